// Command model checks the protocol of package redlock with spin: it searches every
// interleaving of a few small fleets (lease.pml, and clock.pml for the arithmetic of time), and
// then breaks the rules of the protocol one at a time, to see that each is missed.
//
//	make model                                      all of it, and writes docs/model.md
//	cd test && go run ./model -quick                what the tests run
//	cd test && go run ./model -trace NO_FENCE_CHECK how that mutant fails, step by step
//
// It proves nothing about the Go code. What ties the two together is that the model's nodes do
// what the scripts in redlock/lua do, rule by rule, and the simulation, which runs the code
// itself. docs/safety.md says what each of them leaves to the other.
package main
