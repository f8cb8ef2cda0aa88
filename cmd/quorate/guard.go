package main

import (
	"bufio"
	"fmt"
	"io"
	"sync"
	"time"
)

// guardArgument, alone on the command line, has a process be the guard of another.
const guardArgument = "guard-of-programs"

// runGuard reads lines of a process group and the milliseconds that it may live from now on, -1 when it is no
// concern any more. It kills a group whose time is over, and at the end of the lines, which is that of who
// wrote them, all that are left.
func runGuard(lines io.Reader, kill func(group int)) {
	var mu sync.Mutex
	groups := map[int]*time.Timer{}
	end := func(group int) {
		mu.Lock()
		defer mu.Unlock()
		if timer, ok := groups[group]; ok {
			timer.Stop()
			delete(groups, group)
			kill(group)
		}
	}
	scanner := bufio.NewScanner(lines)
	for scanner.Scan() {
		var group, left int
		if _, err := fmt.Sscan(scanner.Text(), &group, &left); err != nil {
			continue // the last one may be cut off
		}
		mu.Lock()
		timer, known := groups[group]
		if known {
			timer.Stop()
		}
		if left < 0 {
			delete(groups, group)
		} else {
			groups[group] = time.AfterFunc(time.Duration(left)*time.Millisecond, func() { end(group) })
		}
		mu.Unlock()
	}
	mu.Lock()
	defer mu.Unlock()
	for group, timer := range groups {
		timer.Stop()
		kill(group)
	}
}
