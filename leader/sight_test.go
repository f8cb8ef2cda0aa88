package leader

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
)

// A view is what a look at five nodes finds.
type view struct {
	holder string // at a quorum
	record record
	free   int // nodes without a lock
	young  int // of these, nodes that have restarted lately
	failed int
}

func (v view) status() redlock.Status {
	s := redlock.Status{Name: "office", Nodes: make([]redlock.NodeStatus, 5)}
	if v.holder != "" {
		s.Holder = "host/" + v.holder
	}
	if v.record.Number > 0 {
		v.record.Version = recordVersion
		s.State, _ = json.Marshal(v.record)
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		switch {
		case i < v.free:
			if i < v.young {
				n.Quarantine = time.Second
			}
		case i < v.free+v.failed:
			n.Err = errors.New("down")
		default:
			n.Holder = "host/" + v.holder
		}
	}
	return s
}

func rec(number redlock.Token, p phase) record {
	return record{Lease: "L" + number.String(), Leader: "n" + number.String(), Number: number, Phase: p}
}

// A look asks the nodes one by one, so it may find anything beside anything.
func TestASeriesOfLooksIsPutInOrder(t *testing.T) {
	const vacancy, nothing = redlock.Token(0), redlock.Token(-1)
	type look struct {
		after time.Duration // since the last one
		view  view
		tells redlock.Token
	}
	for name, looks := range map[string][]look{
		"nobody has ever led": {
			{0, view{free: 5}, vacancy},
			{time.Second, view{free: 5}, nothing},
			{time.Second, view{holder: "L1", record: rec(1, leading)}, 1},
		},
		"a minority knows that nobody leads": {
			{0, view{free: 2, failed: 3}, nothing},
			{time.Hour, view{free: 2, failed: 3}, nothing},
		},
		"nodes that came back empty know nothing": {
			{0, view{free: 3, young: 3}, nothing},
			{time.Hour, view{free: 3, young: 1}, nothing},
		},
		"a term that is elected has not begun": {
			{0, view{holder: "L1", record: rec(1, elected)}, vacancy},
			{time.Second, view{holder: "L1", record: rec(1, elected)}, nothing},
			{time.Second, view{holder: "L1", record: rec(1, leading)}, 1},
		},
		"nodes that miss the newest record answer alone": {
			{0, view{holder: "L7", record: rec(7, leading)}, 7},
			{time.Second, view{holder: "L5", record: rec(5, leading)}, nothing},
			{time.Second, view{holder: "L5", record: rec(5, ended)}, nothing},
			{time.Second, view{holder: "L7", record: rec(5, leading)}, nothing},
			{time.Second, view{holder: "L9", record: rec(9, leading)}, 9},
			{time.Second, view{holder: "L7", record: rec(7, leading)}, nothing},
		},
		"a record of another lease than the holder's": {
			{0, view{holder: "L8", record: rec(7, leading)}, nothing},
			{time.Second, view{holder: "L8", record: rec(8, leading)}, 8},
		},
		"a leader resigns and another follows": {
			{0, view{holder: "L1", record: rec(1, leading)}, 1},
			{time.Second, view{holder: "L1", record: rec(1, ended)}, vacancy},
			{time.Second, view{free: 5, record: rec(1, ended)}, nothing},
			{time.Second, view{holder: "L2", record: rec(1, ended)}, nothing},
			{time.Second, view{holder: "L2", record: rec(2, leading)}, 2},
		},
		"another was elected and has not begun": {
			{0, view{holder: "L1", record: rec(1, leading)}, 1},
			{time.Second, view{holder: "L2", record: rec(2, elected)}, vacancy},
			{time.Second, view{holder: "L3", record: rec(3, elected)}, nothing},
			{time.Second, view{holder: "L3", record: rec(3, leading)}, 3},
		},
		"a leader crashes": {
			{0, view{holder: "L1", record: rec(1, leading)}, 1},
			{time.Second, view{free: 5, record: rec(1, leading)}, nothing},
			{DefaultTTL - 1, view{free: 5, record: rec(1, leading)}, nothing},
			{1, view{free: 3, failed: 2, record: rec(1, leading)}, vacancy},
			{time.Hour, view{free: 5, record: rec(1, leading)}, nothing},
			{time.Hour, view{holder: "L1", record: rec(1, leading)}, nothing},
		},
		"locks vanish and come back": {
			{0, view{holder: "L1", record: rec(1, leading)}, 1},
			{time.Second, view{free: 5, record: rec(1, leading)}, nothing},
			{time.Second, view{holder: "L1", record: rec(1, leading)}, nothing},
			{DefaultTTL, view{free: 5, record: rec(1, leading)}, nothing},
			{DefaultTTL - 1, view{free: 2, record: rec(1, leading)}, nothing},
			{DefaultTTL, view{free: 5, record: rec(1, leading)}, nothing},
		},
		"a foreign client takes the lock of a leader who crashed": {
			{0, view{holder: "L1", record: rec(1, leading)}, 1},
			{time.Second, view{holder: "foreign", record: rec(1, leading)}, nothing},
			{DefaultTTL, view{holder: "foreign", record: rec(1, leading)}, vacancy},
		},
		"a term is missed that crashed": {
			{0, view{holder: "L1", record: rec(1, leading)}, 1},
			{time.Second, view{free: 5, record: rec(2, leading)}, nothing},
			{DefaultTTL, view{free: 5, record: rec(2, leading)}, vacancy},
			{time.Second, view{holder: "L3", record: rec(3, leading)}, 3},
		},
		"nodes have forgotten all": {
			{0, view{holder: "L1", record: rec(1, leading)}, 1},
			{time.Second, view{free: 5}, nothing},
			{DefaultTTL, view{free: 5}, vacancy},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := sight{name: "office", ttl: DefaultTTL}, time.Now()
			for i, l := range looks {
				now = now.Add(l.after)
				term, news := s.look(l.view.status(), now)
				require.Equal(t, l.tells != nothing, news, "look %d: %+v", i, term)
				if news {
					require.Equal(t, l.tells, term.Number, "look %d", i)
					require.Equal(t, "office", term.Name)
				}
			}
		})
	}
}

// Whatever the looks find, the numbers grow, no term is yielded that no record says has begun, and no
// two vacancies follow each other.
func TestWhateverLooksFindTheNumbersGrow(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s, now := sight{name: "office", ttl: DefaultTTL}, time.Now()
		var last redlock.Token
		before := redlock.Token(-1)
		for range 200 {
			now = now.Add(time.Duration(rnd.IntN(10)) * time.Second)
			v := view{free: rnd.IntN(6), young: rnd.IntN(3), failed: rnd.IntN(3)}
			v.record = rec(redlock.Token(rnd.IntN(30)), []phase{elected, leading, ended}[rnd.IntN(3)])
			if rnd.IntN(2) == 0 {
				v.holder, v.free = rec(redlock.Token(rnd.IntN(30)), leading).Lease, rnd.IntN(3)
			}
			if rnd.IntN(2) == 0 {
				v.holder, v.free = v.record.Lease, rnd.IntN(3)
			}
			term, news := s.look(v.status(), now)
			if !news {
				continue
			}
			if term.Number == 0 {
				require.NotZero(t, before, "seed %d", seed)
			} else {
				require.Greater(t, term.Number, last, "seed %d", seed)
				require.Equal(t, leading, v.record.Phase)
				require.Equal(t, v.record.Number, term.Number)
				require.Equal(t, v.record.Lease, v.holder)
				last = term.Number
			}
			before = term.Number
		}
		require.NotZero(t, last)
	}
}
