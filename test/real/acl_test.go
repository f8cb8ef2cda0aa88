package real_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/redlock"
	"github.com/quorate/quorate/test/redisserver"
)

// documentedRule is the rule of docs/acl.md, word by word.
func documentedRule(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/acl.md")
	require.NoError(t, err)
	var found []string
	for line := range strings.Lines(string(page)) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == "user" && words[2] == "on" {
			require.Empty(t, found, "docs/acl.md has two rules")
			found = words
		}
	}
	require.NotEmpty(t, found, "docs/acl.md has no line that begins with: user … on")
	return found
}

// logIn makes a client that logs in as the rule's user.
func logIn(rule []string) func(*redis.Options) {
	return func(o *redis.Options) {
		o.Username = rule[1]
		for _, word := range rule {
			if password, ok := strings.CutPrefix(word, ">"); ok {
				o.Password = password
			}
		}
	}
}

// examiner is the test's own user beside that of the rule.
const examiner = "user examiner on >examiner ~* &* +@all"

func startWithRule(t *testing.T, rule []string, opts ...redisserver.Option) *redisserver.Server {
	t.Helper()
	return redisserver.Start(t, append(opts, redisserver.WithACL("user default off", strings.Join(rule, " "), examiner))...)
}

func examine(server *redisserver.Server) *redis.Client {
	return server.Client(logIn(strings.Fields(examiner)))
}

// A trial is one use of a Locker by a user with few rights.
type trial struct {
	t              *testing.T
	server         *redisserver.Server
	eye            *redis.Client
	locker, second *redlock.Locker // two processes
	log            *journal
	patience       time.Duration // with what is missing where a right is
}

// aclSteps are what the rule has to be good for. Each tells what does not work.
var aclSteps = []struct {
	name string
	run  func(*trial) error
}{
	{"acquire", func(x *trial) error {
		return x.withLease(func(*redlock.Lease) error { return nil })
	}},
	{"acquire after the scripts were loaded", func(x *trial) error {
		return x.withLease(func(*redlock.Lease) error { return nil })
	}},
	{"acquire beyond the fence", func(x *trial) error {
		// A clock that is behind: the first proposal is refused, the second is accepted.
		if err := x.eye.Set(x.t.Context(), "{quorate:job}:fence", time.Now().Add(time.Minute).UnixMicro(), 0).Err(); err != nil {
			return err
		}
		return x.withLease(func(*redlock.Lease) error { return nil })
	}},
	{"extend", func(x *trial) error {
		return x.withLease(func(l *redlock.Lease) error { return l.Extend(x.t.Context()) })
	}},
	{"save", func(x *trial) error {
		return x.withLease(func(l *redlock.Lease) error { return l.Save(x.t.Context(), []byte("state")) })
	}},
	{"release", func(x *trial) error {
		lease, err := x.locker.TryAcquire(x.t.Context(), "job")
		if err != nil {
			return err
		}
		return lease.Release(x.t.Context())
	}},
	{"inspect", func(x *trial) error {
		_, err := x.locker.Inspect(x.t.Context(), "job")
		return err
	}},
	{"refuse what is taken", func(x *trial) error {
		return x.withLease(func(*redlock.Lease) error {
			if _, err := x.second.TryAcquire(x.t.Context(), "job"); !errors.Is(err, redlock.ErrTaken) {
				return fmt.Errorf("not ErrTaken: %w", err)
			}
			return nil
		})
	}},
	{"take turns", func(x *trial) error {
		return x.withLease(func(*redlock.Lease) error {
			ctx, cancel := context.WithTimeout(x.t.Context(), x.patience)
			defer cancel()
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_, _ = x.second.Acquire(ctx, "job")
			}()
			defer func() { <-gone }()
			defer cancel()
			for ctx.Err() == nil {
				if n, err := x.eye.Exists(ctx, "{quorate:job}:line").Result(); err == nil && n == 1 {
					return nil
				}
			}
			return errors.New("nobody got in line")
		})
	}},
	{"listen for a release", func(x *trial) error { return x.wait(false) }},
	{"stop listening", func(x *trial) error { return x.wait(true) }},
	{"watch for news", func(x *trial) error { return x.watch("job") }},
	{"watch for news of a name with a hash tag", func(x *trial) error { return x.watch("a{b}c") }},
	{"restart rule", func(x *trial) error {
		reports, err := x.locker.Check(x.t.Context())
		if err != nil {
			return err
		}
		if reports[0].RunID == "" || len(x.log.lines("refuses INFO")) > 0 {
			return fmt.Errorf("the node cannot be told from another: %v", reports[0].Warnings)
		}
		return nil
	}},
	{"nothing is denied", func(x *trial) error {
		entries, err := x.eye.ACLLog(x.t.Context(), 100).Result()
		if err != nil {
			return err
		}
		var denied []string
		for _, e := range entries {
			if e.Object != "client|setinfo" && e.Object != "client|maint_notifications" && e.Object != "client" {
				denied = append(denied, e.Object)
			}
		}
		if len(denied) > 0 {
			return fmt.Errorf("ACL LOG has %q", denied)
		}
		return nil
	}},
}

// withLease runs f under a lease, and frees the name by force if the user may not.
func (x *trial) withLease(f func(*redlock.Lease) error) error {
	lease, err := x.locker.TryAcquire(x.t.Context(), "job")
	if err != nil {
		return err
	}
	err = f(lease)
	_ = lease.Release(x.t.Context())
	return errors.Join(err, x.eye.Del(x.t.Context(), lockKey("job")).Err())
}

// wait has a second process wait for the name until it listens, and give up.
func (x *trial) wait(end bool) error {
	return x.withLease(func(*redlock.Lease) error {
		ctx, cancel := context.WithCancel(x.t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = x.second.Acquire(ctx, "job")
		}()
		err := x.subscribers(1)
		cancel()
		<-gone
		if end && err == nil {
			err = x.subscribers(0)
		}
		return err
	})
}

// watch has a second process watch a name, of which the first publishes news.
func (x *trial) watch(name string) error {
	watch, err := x.second.Watch(name)
	if err != nil {
		return err
	}
	defer watch.Close()
	lease, err := x.locker.TryAcquire(x.t.Context(), name)
	if err != nil {
		return err
	}
	err = woken(watch, "begins to listen", x.patience)
	if err == nil {
		err = lease.Publish(x.t.Context(), []byte("news"))
	}
	if err == nil {
		err = woken(watch, "a publication", x.patience)
	}
	released := lease.Release(x.t.Context())
	if err == nil && released == nil {
		err = woken(watch, "the release after it", x.patience)
	}
	return errors.Join(err, released, x.eye.Del(x.t.Context(), lockKey(name)).Err())
}

// woken waits for a wake-up.
func woken(watch *redlock.Watch, event string, patience time.Duration) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case <-watch.C:
		return nil
	case <-deadline.C:
		return fmt.Errorf("nobody is woken: %s", event)
	}
}

func (x *trial) subscribers(wanted int64) error {
	deadline := time.NewTimer(x.patience)
	defer deadline.Stop()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		n, err := x.eye.PubSubNumSub(x.t.Context(), lockKey("job")).Result()
		if err != nil || n[lockKey("job")] == wanted {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return fmt.Errorf("%d listen, not %d", n[lockKey("job")], wanted)
		}
	}
}

// failures runs all steps and returns what did not work, with patience for each.
func failures(t *testing.T, patience time.Duration, rule []string, opts ...redisserver.Option) map[string]error {
	t.Helper()
	x := &trial{t: t, server: startWithRule(t, rule, opts...), log: &journal{}, patience: patience}
	x.eye = examine(x.server)
	clients := func() []redis.UniversalClient { return []redis.UniversalClient{x.server.Client(logIn(rule))} }
	short := redlock.WithTTL(redlock.DefaultTTL) // what cannot be released is in the way of later steps
	x.locker = newLocker(t, clients(), atEase(x.log.logger(), short)...)
	x.second = newLocker(t, clients(), atEase(short)...)
	failed := map[string]error{}
	for _, step := range aclSteps {
		if step.name == "nothing is denied" {
			if len(failed) > 0 {
				break // of course something is denied
			}
			pass(t, 6500*time.Millisecond) // in which a listener that hears nothing asks for a sign of life
		}
		if err := step.run(x); err != nil {
			failed[step.name] = err
		}
	}
	return failed
}

func TestTheDocumentedACLRuleSuffices(t *testing.T) {
	t.Parallel()
	require.Empty(t, failures(t, soon, documentedRule(t)))
}

func TestTheDocumentedACLRuleSufficesWithTLS(t *testing.T) {
	t.Parallel()
	require.Empty(t, failures(t, soon, documentedRule(t), redisserver.WithTLS()))
}

// The rule is the smallest: without any of its rights, something does not work.
func TestEachRightOfTheDocumentedACLRuleIsNeeded(t *testing.T) {
	t.Parallel()
	breaks := map[string]string{
		"~quorate:*":         "acquire",
		"~{quorate:*}:fence": "acquire",
		"~{quorate:*}:line":  "take turns",
		"&quorate:*":         "listen for a release",
		"+eval":              "acquire",
		"+evalsha":           "acquire",
		"+set":               "acquire",
		"+get":               "release",
		"+del":               "release",
		"+pexpire":           "extend",
		"+pttl":              "refuse what is taken",
		"+publish":           "release",
		"+subscribe":         "listen for a release",
		"+unsubscribe":       "stop listening",
		"+ping":              "nothing is denied",
		"+info":              "restart rule",
	}
	rule := documentedRule(t)
	tested := 0
	for i, right := range rule {
		if !strings.ContainsAny(right[:1], "+~&") {
			continue
		}
		tested++
		t.Run("without "+right, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, breaks, right, "say what breaks without it")
			patience := 2 * time.Second
			if breaks[right] == "nothing is denied" {
				patience = soon // all the rest works
			}
			failed := failures(t, patience, append(append([]string{}, rule[:i]...), rule[i+1:]...))
			require.Contains(t, failed, breaks[right])
			t.Logf("%s: %v", breaks[right], failed[breaks[right]])
			requireClearDenial(t, right, failed)
		})
	}
	require.Len(t, breaks, tested)
}

// requireClearDenial checks that the errors of steps that a right is missing for name the node, what it
// denies, as far as the server tells, and where the rights are listed.
func requireClearDenial(t *testing.T, right string, failed map[string]error) {
	t.Helper()
	told := 0
	for _, err := range failed {
		var quorum *redlock.QuorumError
		if !errors.As(err, &quorum) || errors.Is(err, redlock.ErrTaken) {
			continue // told in another way, or what an earlier step has left behind
		}
		told++
		require.Len(t, quorum.Nodes, 1)
		require.Contains(t, quorum.Nodes[0].Node, "127.0.0.1:", "which node")
		said := quorum.Nodes[0].Err.Error()
		require.Regexp(t, "NOPERM|ACL failure in script|user executing the script can't", said)
		if command, ok := strings.CutPrefix(right, "+"); ok && strings.HasPrefix(said, "NOPERM") {
			require.Contains(t, said, "'"+command+"'")
		}
		if strings.HasPrefix(right, "~") {
			require.Contains(t, said, "key")
		}
		require.Contains(t, err.Error(), "docs/acl.md")
	}
	if !strings.HasPrefix(right, "&") && !slices.Contains([]string{"+subscribe", "+unsubscribe", "+ping", "+info", "~{quorate:*}:line"}, right) {
		require.Positive(t, told)
	}
}

func TestANodeThatRefusesINFOIsUsedAndTheLogSaysSo(t *testing.T) {
	t.Parallel()
	var rule []string
	for _, word := range documentedRule(t) {
		if word != "+info" {
			rule = append(rule, word)
		}
	}
	var clients []redis.UniversalClient
	for range 3 {
		clients = append(clients, startWithRule(t, rule).Client(logIn(rule)))
	}
	log := &journal{}
	locker := newLocker(t, clients, log.logger(), redlock.WithNodeTimeout(4*time.Second)) // with the restart rule
	lease := acquire(t, locker, "job")
	require.NoError(t, lease.Extend(t.Context()))
	require.NoError(t, lease.Release(t.Context()))
	for _, client := range clients {
		addr := client.(*redis.Client).Options().Addr
		require.Eventually(t, func() bool { return len(log.lines("level=WARN", "refuses INFO", "node="+addr)) == 1 }, soon, poll)
	}
	reports, err := locker.Check(t.Context())
	require.NoError(t, err)
	for _, report := range reports {
		require.True(t, report.Up)
		require.Contains(t, strings.Join(report.Warnings, "\n"), "allow +info")
	}
}

func TestAFleetWithTLSAndTheDocumentedUserWorks(t *testing.T) {
	t.Parallel()
	rule := documentedRule(t)
	fleet := redisserver.StartFleet(t, 3, redisserver.WithTLS(),
		redisserver.WithACL("user default off", strings.Join(rule, " "), examiner))
	first := newLocker(t, fleet.Clients(logIn(rule)), atEase()...)
	second := newLocker(t, fleet.Clients(logIn(rule)), atEase()...)
	lease := acquire(t, first, "job")
	_, err := second.TryAcquire(t.Context(), "job")
	require.ErrorIs(t, err, redlock.ErrTaken)

	var next *redlock.Lease
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		next, _ = second.Acquire(t.Context(), "job")
	}()
	require.Eventually(t, func() bool {
		n, err := examine(fleet[0]).PubSubNumSub(t.Context(), lockKey("job")).Result()
		return err == nil && n[lockKey("job")] == 1
	}, soon, 20*time.Millisecond)
	require.NoError(t, lease.Extend(t.Context()))
	require.NoError(t, lease.Release(t.Context()))
	<-waited
	require.NotNil(t, next)
	require.Greater(t, next.Token(), lease.Token())
	require.NoError(t, next.Release(t.Context()))

	strangers := newLocker(t, fleet.Clients(), atEase()...)
	_, err = strangers.TryAcquire(t.Context(), "job")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "NOAUTH")
}

func TestWhoWatchesOnRealServersIsWokenUnderTheDocumentedRule(t *testing.T) {
	t.Parallel()
	rule := documentedRule(t)
	fleet := redisserver.StartFleet(t, 3, redisserver.WithACL("user default off", strings.Join(rule, " "), examiner))
	first := newLocker(t, fleet.Clients(logIn(rule)), atEase()...)
	second := newLocker(t, fleet.Clients(logIn(rule)), atEase()...)
	lease := acquire(t, first, "job", redlock.WithAutoExtend(true))
	watches := make([]*redlock.Watch, 3)
	for i := range watches {
		watch, err := []*redlock.Locker{first, second}[i%2].Watch("job")
		require.NoError(t, err)
		defer watch.Close()
		watches[i] = watch
	}
	wakes := func(event string) {
		t.Helper()
		for i, watch := range watches {
			require.NoError(t, woken(watch, event, soon), "watch %d", i)
		}
	}
	news := lockKey("job") + "}:fence"
	allListen := func() bool {
		for _, server := range fleet {
			n, err := examine(server).PubSubNumSub(t.Context(), news).Result()
			if err != nil || n[news] != 2 {
				return false
			}
		}
		return true
	}
	publish := func(state string) {
		t.Helper()
		require.NoError(t, lease.Publish(t.Context(), []byte(state)))
		wakes(state)
		status, err := second.Inspect(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, state, string(status.State), "who was woken finds it")
	}
	wakes("they have begun to listen")
	require.Eventually(t, allListen, soon, poll)
	for i := range 10 {
		publish(fmt.Sprint("news ", i))
	}
	for _, server := range fleet {
		require.NoError(t, examine(server).ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
	}
	require.Eventually(t, allListen, soon, poll, "they connect again")
	publish("after the subscriptions broke")
	require.NoError(t, lease.Release(t.Context()))
	wakes("the release")
	for _, watch := range watches {
		watch.Close()
	}
	require.Eventually(t, func() bool {
		n, err := examine(fleet[0]).PubSubNumSub(t.Context(), news).Result()
		return err == nil && n[news] == 0
	}, soon, poll, "nobody listens any more")
}
