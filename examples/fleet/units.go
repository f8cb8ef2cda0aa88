package main

import (
	"fmt"

	"github.com/quorate/quorate/redlock"
)

// A sale is one entry in the record of a product.
type sale struct {
	token   redlock.Token
	unit    int
	replica int
}

func (s sale) String() string { return fmt.Sprintf("%d %d %d", int64(s.token), s.unit, s.replica) }

func parseSale(entry string) (sale, error) {
	var s sale
	var token int64
	if _, err := fmt.Sscanf(entry, "%d %d %d", &token, &s.unit, &s.replica); err != nil {
		return s, fmt.Errorf("read the sale %q: %w", entry, err)
	}
	s.token = redlock.Token(token)
	return s, nil
}

// A shelf is a product at the end of the run.
type shelf struct {
	product       string
	started, left int
	sales         []sale // in the order in which the store has admitted them
}

// units are all shelves.
type units []shelf

func (u units) started() int {
	n := 0
	for _, s := range u {
		n += s.started
	}
	return n
}

func (u units) left() int {
	n := 0
	for _, s := range u {
		n += s.left
	}
	return n
}

func (u units) sold() int {
	n := 0
	for _, s := range u {
		n += len(s.sales)
	}
	return n
}

// oversold tells of units that were sold twice, or that there never were, and of shelves on
// which something else is left than was not sold.
func (u units) oversold() (wrong []string) {
	for _, s := range u {
		times := map[int]int{}
		for _, sale := range s.sales {
			times[sale.unit]++
			switch {
			case sale.unit < 1 || sale.unit > s.started:
				wrong = append(wrong, fmt.Sprintf("%s: unit %d was sold, which there never was", s.product, sale.unit))
			case times[sale.unit] > 1:
				wrong = append(wrong, fmt.Sprintf("%s: unit %d was sold again, by replica %d", s.product, sale.unit, sale.replica))
			}
		}
		if s.left != s.started-len(times) {
			wrong = append(wrong, fmt.Sprintf("%s: %d units are left, and should be %d", s.product, s.left, s.started-len(times)))
		}
	}
	return wrong
}

// admittedStale tells of writes that the store has admitted after one with a higher token.
func (u units) admittedStale() (wrong []string) {
	for _, s := range u {
		var highest redlock.Token
		for _, sale := range s.sales {
			if sale.token < highest {
				wrong = append(wrong, fmt.Sprintf("%s: replica %d sold unit %d with token %d after token %d", s.product, sale.replica, sale.unit, sale.token, highest))
			}
			highest = max(highest, sale.token)
		}
	}
	return wrong
}
