package dashboard

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/leader"
	"github.com/quorate/quorate/redlock"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func term(name string, number int, since time.Time) leader.Term {
	return leader.Term{Name: name, Number: redlock.Token(number), Leader: fmt.Sprint("host-", number), Since: since}
}

func TestAListingThatIsOlderThanTheNewestTermChangesNothing(t *testing.T) {
	el := &election{}
	el.note(term("a", 1, noon), noon, true)
	el.note(term("a", 2, noon.Add(time.Minute)), noon.Add(time.Minute), true)
	el.note(term("a", 1, noon), noon.Add(2*time.Minute), false)
	require.Len(t, el.terms, 2)
	require.True(t, el.leading)
	require.EqualValues(t, 2, el.terms[1].Number)
	require.Zero(t, el.terms[1].Until)
}

func TestATermEndsWhenTheNextBeganIfItWasFollowedAndElseWhenItWasSeenLast(t *testing.T) {
	for followed, end := range map[bool]time.Time{true: noon.Add(10 * time.Minute), false: noon.Add(time.Minute)} {
		el := &election{}
		el.note(term("a", 1, noon), noon, followed)
		el.note(term("a", 1, noon), noon.Add(time.Minute), followed)
		el.note(term("a", 2, noon.Add(10*time.Minute)), noon.Add(11*time.Minute), followed)
		require.Equal(t, end.UnixMilli(), el.terms[0].Until)
		require.Equal(t, noon.Add(10*time.Minute).UnixMilli(), el.terms[1].Since)
	}
}

func TestATermNeverEndsBeforeItBegan(t *testing.T) {
	el := &election{}
	el.note(term("a", 1, noon), noon, true)
	el.note(term("a", 2, noon.Add(-time.Hour)), noon.Add(time.Minute), true) // by a leader's clock that is behind
	require.GreaterOrEqual(t, el.terms[0].Until, el.terms[0].Since)
	el.note(term("a", 3, noon.Add(time.Hour)), noon.Add(2*time.Minute), true) // and by one that is ahead
	require.Equal(t, noon.Add(2*time.Minute).UnixMilli(), el.terms[2].Since)
	el.end(noon.Add(-time.Hour))
	require.GreaterOrEqual(t, el.terms[2].Until, el.terms[2].Since)
}

func TestATermThatLookedOverAndIsNotGoesOn(t *testing.T) {
	el := &election{}
	el.note(term("a", 1, noon), noon, false)
	el.note(leader.Term{Name: "a"}, noon.Add(time.Second), false)
	require.False(t, el.leading)
	require.NotZero(t, el.terms[0].Until)
	el.note(term("a", 1, noon), noon.Add(2*time.Second), false)
	require.True(t, el.leading)
	require.Zero(t, el.terms[0].Until)
	require.Len(t, el.terms, 1)
}

func TestTermsAndElectionsAreBounded(t *testing.T) {
	var e elections
	e.init(nil)
	for i := range 3 * maxTerms {
		e.listed([]leader.Term{term("busy", i+1, noon)}, 1, noon.Add(time.Duration(i)*time.Second))
	}
	require.Len(t, e.byName["busy"].terms, maxTerms)
	require.EqualValues(t, 3*maxTerms, e.byName["busy"].terms[maxTerms-1].Number)
	var many []leader.Term
	for i := range 3 * maxElections {
		many = append(many, term(fmt.Sprintf("name-%04d", i), 1, noon))
	}
	e.listed(many, len(many), noon.Add(time.Hour))
	require.Len(t, e.byName, maxElections)
	require.Equal(t, 3*maxElections, e.count())
	require.NotContains(t, e.byName, "busy", "it was not heard of for longest")
}

func TestJobsThatChangedAreAskedAboutFirstAndEachInTime(t *testing.T) {
	var l ledgers
	jobs := map[string]redlock.Token{}
	for i := range 3 * jobsAsked {
		jobs[fmt.Sprintf("job-%03d", i)] = 1
	}
	asked := map[string]bool{}
	for range 3 {
		l.listed(jobs)
		for _, job := range l.next() {
			asked[job] = true
		}
	}
	require.Len(t, asked, len(jobs), "three rounds suffice for three times as many")
	jobs["job-250"] = 2
	l.listed(jobs)
	l.hurry("job-299")
	require.Equal(t, []string{"job-299", "job-250"}, l.next()[:2])
	l.listed(map[string]redlock.Token{"job-001": 1})
	require.Equal(t, []string{"job-001"}, l.next())
	require.Equal(t, 1, l.count())
}

func TestABoardSendsEachChangeOnce(t *testing.T) {
	b := newBoard()
	updates, at, changed := b.since(0)
	require.Empty(t, updates)
	b.put(jobsSection, []item{{"a", 1}, {"b", 2}})
	<-changed
	updates, at, changed = b.since(at)
	require.Len(t, updates, 1)
	require.Equal(t, []string{"a", "b"}, updates[0].Order)
	require.Len(t, updates[0].Rows, 2)

	b.put(jobsSection, []item{{"a", 1}, {"b", 2}})
	select {
	case <-changed:
		require.Fail(t, "nothing has changed")
	default:
	}
	b.put(jobsSection, []item{{"a", 1}, {"b", 3}})
	updates, at, _ = b.since(at)
	require.Nil(t, updates[0].Order)
	require.Equal(t, "3", string(updates[0].Rows[0]))
	require.Len(t, updates[0].Rows, 1)

	b.put(jobsSection, nil)
	updates, _, _ = b.since(at)
	require.True(t, updates[0].Empty)
	b.put(nodesSection, nil)
	fresh, _, _ := b.since(0)
	require.Len(t, fresh, 2, "that there is nothing is told too: the page may show what was before its server was started anew")
}

func TestAnElectionThatWasNotLookedAtIsNotTakenForVacant(t *testing.T) {
	var e elections
	e.init(nil)
	e.listed([]leader.Term{term("a", 1, noon), term("z", 2, noon)}, 2, noon)
	e.listed([]leader.Term{term("a", 1, noon)}, 5000, noon.Add(time.Minute)) // z may be among the rest
	require.True(t, e.byName["z"].leading)
	require.Equal(t, 5000, e.count())
	e.listed([]leader.Term{term("a", 1, noon)}, 1, noon.Add(2*time.Minute))
	require.False(t, e.byName["z"].leading)
}
