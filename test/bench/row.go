package main

import (
	"context"
	"fmt"
	"time"
)

// A row is one of the things that are measured.
type row struct {
	number  int
	title   string
	measure func(ctx context.Context, g *ground) (*finding, error)
}

var rows = []row{
	{1, "Many names, five nodes", throughputFive},
	{2, "One caller, five nodes", latency},
	{3, "Many names, one node", throughputOne},
	{4, "Nodes that hang", hung},
	{5, "One hot name, one process", hotName},
	{6, "One hot name, many processes", hotProcesses},
	{7, "Many leases", manyLeases},
	{8, "The next leader", failover},
	{9, "Many jobs in one second", storm},
	{10, "A waiter that waits", idleWaiter},
	{11, "As the work grows", curves},
	{12, "Guarded updates", guards},
}

// A finding is what was measured for a row, as the page tells it and as it is kept in the file
// between runs.
type finding struct {
	Number int
	Title  string
	How    string // what was measured, in sentences
	Aims   []aim
	Tables []table
	Notes  []string

	Date string
	Load string // average of the machine before and after
	Took time.Duration
}

// An aim is a figure with a bound that we set ourselves.
type aim struct {
	What   string
	Figure float64
	Bound  float64
	AtMost bool   // the figure is to be that much at most, otherwise at least
	Unit   string // "×", "ms" and the like
}

func atLeast(what string, figure, bound float64, unit string) aim {
	return aim{what, figure, bound, false, unit}
}

func atMost(what string, figure, bound float64, unit string) aim {
	return aim{what, figure, bound, true, unit}
}

func (a aim) kept() bool {
	if a.AtMost {
		return a.Figure <= a.Bound
	}
	return a.Figure >= a.Bound
}

// margin is how many times better the figure is than its bound: below 1 it is missed.
func (a aim) margin() float64 {
	better, worse := a.Figure, a.Bound
	if a.AtMost {
		better, worse = worse, better
	}
	const most = 1000 // nothing at all is infinitely less than some
	if worse <= 0 || better/worse > most {
		return most
	}
	return better / worse
}

// bound is the aim in words.
func (a aim) bound() string {
	sign := "≥"
	if a.AtMost {
		sign = "≤"
	}
	return sign + " " + unit(a.Bound, a.Unit)
}

// unit is a figure with its unit.
func unit(figure float64, unit string) string {
	if unit == "×" || unit == "" {
		return number(figure) + unit
	}
	return number(figure) + " " + unit
}

// number is a figure with three digits that say something.
func number(v float64) string {
	switch {
	case v >= 10_000:
		return thousands(int64(v + 0.5))
	case v >= 100 || v == float64(int64(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
