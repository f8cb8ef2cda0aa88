package fencing

import (
	"context"
	"fmt"
	"reflect"

	"github.com/quorate/quorate/redlock"
)

// A Gate stands at a resource and remembers, for each, the highest token that it has admitted.
// Admit lets a token pass that is as high or higher, and refuses an older one with an error that
// wraps ErrStaleToken. When it has returned nil, no older token passes any more.
//
// Admit alone protects what comes before it: a write needs the check in one step with itself,
// because a pause fits between any two. So a gate also offers writes, or takes part in a
// transaction: RedisGate has Set, HSet, IncrBy and Run, SQLGate admits in yours.
//
// A gate must be safe for use by many goroutines, and must not lose what it has admitted.
type Gate interface {
	Admit(ctx context.Context, resource string, token redlock.Token) error
}

// GateFunc makes a Gate of a function.
type GateFunc func(ctx context.Context, resource string, token redlock.Token) error

// Admit calls the function.
func (f GateFunc) Admit(ctx context.Context, resource string, token redlock.Token) error {
	return f(ctx, resource, token)
}

// missing reports whether there is no gate behind the interface: also a nil pointer, or a nil function,
// of any type, which would be noticed at its first use only.
func missing(gate Gate) bool {
	if gate == nil {
		return true
	}
	switch v := reflect.ValueOf(gate); v.Kind() {
	case reflect.Pointer, reflect.Func:
		return v.IsNil()
	}
	return false
}

// unmade is the error of a gate or table that is nil, or was not made by its constructor.
func unmade(what, constructor string) error {
	return fmt.Errorf("%w: the %s is nil or was not made; make it with %s", redlock.ErrInvalidOption, what, constructor)
}

// maxToken is the largest integer that Lua's numbers hold exactly, and that redlock proposes.
const maxToken redlock.Token = 1<<53 - 1

// checkTicket looks at what every gate is asked with.
func checkTicket(resource string, token redlock.Token) error {
	if err := checkResource(resource); err != nil {
		return err
	}
	return checkToken(token)
}

func checkToken(token redlock.Token) error {
	switch {
	case token <= 0:
		return fmt.Errorf("%w %d: it is not positive; use the token of the lease", ErrInvalidToken, token)
	case token > maxToken:
		return fmt.Errorf("%w %d: the largest is %d; use the token of the lease", ErrInvalidToken, token, maxToken)
	}
	return nil
}

func checkResource(resource string) error {
	switch {
	case resource == "":
		return fmt.Errorf("%w: it is empty; give the resource a name", redlock.ErrInvalidName)
	case len(resource) > redlock.MaxNameLength:
		return fmt.Errorf("%w: %q… has %d bytes, the limit is %d; shorten it or use a hash of it",
			redlock.ErrInvalidName, resource[:32], len(resource), redlock.MaxNameLength)
	}
	return nil
}
