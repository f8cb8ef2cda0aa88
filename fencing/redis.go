package fencing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/redlock"
)

// A RedisGate is the gate for data that lives in one Redis: an ordinary server, a primary with
// its replicas, or a cluster, and none of the nodes that give the leases. It keeps the fence of
// a resource beside the data, and checks it in the same Lua script that writes.
//
// It is safe for use by many goroutines and holds nothing that needs closing.
//
// Its methods return a *StaleError when the gate has admitted a higher token; then nothing was
// written. After any other error of Redis or the network a write may have happened or not. Run
// and IncrBy are never repeated by the client on its own, since a second run may count twice;
// Admit, Set and HSet may be.
type RedisGate struct {
	client    redis.UniversalClient
	settings  redisSettings
	sharded   bool
	telemetry *gateTelemetry
}

var _ Gate = (*RedisGate)(nil)

// NewRedisGate makes a gate. The client stays the caller's, in its default options or any
// others. The error wraps redlock.ErrInvalidOption.
func NewRedisGate(client redis.UniversalClient, opts ...RedisOption) (*RedisGate, error) {
	missing := fmt.Errorf("fencing: %w: the client is nil", redlock.ErrInvalidOption)
	switch c := client.(type) {
	case nil:
		return nil, missing
	case *redis.Client:
		if c == nil {
			return nil, missing
		}
	case *redis.ClusterClient:
		if c == nil {
			return nil, missing
		}
	case *redis.Ring:
		return nil, fmt.Errorf("fencing: %w: the client is a Ring, which moves keys when a shard is down and would leave their fences behind", redlock.ErrInvalidOption)
	}
	s, err := newRedisSettings(opts)
	if err != nil {
		return nil, err
	}
	t, err := newGateTelemetry(s.meters, "redis")
	if err != nil {
		return nil, fmt.Errorf("fencing: create metrics: %w", err)
	}
	_, single := client.(*redis.Client)
	return &RedisGate{client: client, settings: s, sharded: !single, telemetry: t}, nil
}

// Admit lets the token pass if it is as high as the highest that the gate has seen for the
// resource, or higher, and shuts out all that are older. The error wraps ErrStaleToken,
// ErrInvalidToken, redlock.ErrInvalidName or ErrDamagedFence, or is the client's.
func (g *RedisGate) Admit(ctx context.Context, resource string, token redlock.Token) error {
	_, err := g.run(ctx, "admit", resource, token, admitScript, nil)
	return err
}

// Set stores a value under key, as the Redis command does, if the token is admitted. A ttl of 0
// keeps it; a ttl that the key has is not kept.
func (g *RedisGate) Set(ctx context.Context, resource string, token redlock.Token, key string, value any, ttl time.Duration) error {
	if ttl < 0 || (ttl > 0 && ttl < time.Millisecond) {
		return fmt.Errorf("fencing: set %q: %w: ttl %v; give 0 for none, or a millisecond at least", key, redlock.ErrInvalidOption, ttl)
	}
	_, err := g.run(ctx, "set", resource, token, setScript, []string{key}, value, ttl.Milliseconds())
	return err
}

// HSet stores fields of the hash at key, all or none, if the token is admitted.
func (g *RedisGate) HSet(ctx context.Context, resource string, token redlock.Token, key string, fields map[string]any) error {
	if len(fields) == 0 {
		return fmt.Errorf("fencing: hset %q: %w: there are no fields", key, redlock.ErrInvalidOption)
	}
	args := make([]any, 0, 2*len(fields))
	for field, value := range fields {
		args = append(args, field, value)
	}
	_, err := g.run(ctx, "hset", resource, token, hsetScript, []string{key}, args...)
	return err
}

// IncrBy adds delta to the counter at key and returns the new value, if the token is admitted. A
// negative delta that would take the counter below the floor changes nothing, and the error is a
// *BelowFloorError: so stock with floor 0 is never oversold. math.MinInt64 is no floor. A key
// that does not exist counts as 0. Counters are exact up to 2^53 either way; beyond that the
// result is an error.
func (g *RedisGate) IncrBy(ctx context.Context, resource string, token redlock.Token, key string, delta, floor int64) (int64, error) {
	const limit = int64(maxToken)
	if delta > limit || delta < -limit {
		return 0, fmt.Errorf("fencing: incrby %q: %w: delta %d is outside of what scripts count exactly, 2^53-1 either way", key, redlock.ErrInvalidOption, delta)
	}
	cmd, err := g.run(ctx, "incrby", resource, token, incrbyScript, []string{key}, delta, floor)
	if err != nil {
		return 0, err
	}
	reply, err := cmd.Int64Slice()
	switch {
	case err != nil:
		return 0, fmt.Errorf("fencing: incrby %q: unexpected reply: %w", key, err)
	case len(reply) != 2 || (reply[0] != 0 && reply[0] != 1):
		return 0, fmt.Errorf("fencing: incrby %q: unexpected reply %v", key, reply)
	case reply[0] == 0:
		return 0, &BelowFloorError{Key: key, Value: reply[1], Delta: delta, Floor: floor}
	}
	return reply[1], nil
}

// Run runs a script of your own if the token is admitted, in one step with the check. Its keys
// and arguments are those that you give. The command that is returned converts the result; its
// error is redis.Nil when the script returned nil or false, as with any script.
//
// In a cluster all keys must have the hash tag of the resource: see ErrOtherSlot.
func (g *RedisGate) Run(ctx context.Context, resource string, token redlock.Token, script *Script, keys []string, args ...any) *redis.Cmd {
	if script == nil || script.src == "" {
		cmd := redis.NewCmd(ctx)
		cmd.SetErr(fmt.Errorf("fencing: run: %w: the script is nil; make it with NewScript", redlock.ErrInvalidOption))
		return cmd
	}
	cmd, err := g.run(ctx, "run", resource, token, script, keys, args...)
	if err != nil {
		cmd.SetErr(err)
	}
	return cmd
}

// run checks the arguments, runs the script, and says what its error means.
func (g *RedisGate) run(ctx context.Context, op, resource string, token redlock.Token, s *Script, keys []string, args ...any) (*redis.Cmd, error) {
	fence, err := g.check(resource, token, keys)
	if err != nil {
		return redis.NewCmd(ctx), fmt.Errorf("fencing: %s %.512q: %w", op, resource, err) // it may be too long
	}
	once := s != admitScript && s != setScript && s != hsetScript
	cmd := g.eval(ctx, s, once, append(keys[:len(keys):len(keys)], fence),
		append(args[:len(args):len(args)], int64(token), g.settings.fenceTTL.Milliseconds()))
	switch err := cmd.Err(); {
	case err == nil:
		return cmd, nil
	case errors.Is(err, redis.Nil):
		return cmd, err
	case redis.HasErrorPrefix(err, "STALETOKEN "):
		g.telemetry.refused(ctx)
		return cmd, &StaleError{Resource: resource, Token: token, Seen: seen(err)}
	case redis.HasErrorPrefix(err, "BADFENCE "):
		return cmd, fmt.Errorf("fencing: %s %q: %w: key %q holds %q, which is no token; find out who writes to it, and delete it while nobody holds the resource",
			op, resource, ErrDamagedFence, fence, strings.TrimPrefix(err.Error(), "BADFENCE "))
	default:
		return cmd, fmt.Errorf("fencing: %s %q: %w", op, resource, err)
	}
}

func (g *RedisGate) check(resource string, token redlock.Token, keys []string) (fence string, err error) {
	if g == nil || g.client == nil {
		return "", unmade("gate", "NewRedisGate")
	}
	if err := checkTicket(resource, token); err != nil {
		return "", err
	}
	if fence, err = fenceKey(g.settings.keyPrefix, resource); err != nil {
		return "", err
	}
	for _, key := range keys {
		switch key {
		case "":
			return "", fmt.Errorf("%w: an empty key", redlock.ErrInvalidOption)
		case fence:
			return "", fmt.Errorf("%w: key %q is the fence itself", redlock.ErrInvalidOption, key)
		}
	}
	if g.sharded {
		return fence, checkSlots(fence, keys)
	}
	return fence, nil
}

// seen is the fence in the error of a stale token; 0 if it cannot be read.
func seen(err error) redlock.Token {
	fields := strings.Fields(err.Error())
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[1], 10, 64)
	return redlock.Token(max(0, n))
}

// eval runs a script by its name, or by its text where the server does not know it yet.
func (g *RedisGate) eval(ctx context.Context, s *Script, once bool, keys []string, args []any) *redis.Cmd {
	cmd := g.process(ctx, once, "evalsha", s.sha, keys, args)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = g.process(ctx, once, "eval", s.src, keys, args)
	}
	return cmd
}

func (g *RedisGate) process(ctx context.Context, once bool, name, script string, keys []string, args []any) *redis.Cmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, name, script, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	cmd := redis.NewCmd(ctx, append(all, args...)...)
	// The error is in the command.
	if once {
		_ = g.client.Process(ctx, onceCmd{cmd})
	} else {
		_ = g.client.Process(ctx, cmd)
	}
	return cmd
}

// onceCmd is a command that the client must not repeat when its answer is lost.
type onceCmd struct{ *redis.Cmd }

// NoRetry tells the client so.
func (onceCmd) NoRetry() bool { return true }
