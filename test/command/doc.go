// Package command tests the built command quorate against real redis-servers that are set up in the ways that
// its doctor warns of. It does not test what the command does elsewhere: that is in cmd/quorate, on embedded nodes.
package command
