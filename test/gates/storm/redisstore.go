package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorate/quorate/fencing"
	"github.com/quorate/quorate/redlock"
)

// open is what is asked where the gate is taken out.
var open = fencing.GateFunc(func(context.Context, string, redlock.Token) error { return nil })

// redisStore keeps stocks in a Redis that is none of the nodes.
type redisStore struct {
	client  *redis.Client
	run     string
	admits  *fencing.RedisGate // nil: the gate is taken out
	guarded *fencing.Script
}

func openRedis(c storeConfig) (*redisStore, error) {
	s := &redisStore{client: redis.NewClient(&redis.Options{Addr: c.DSN}), run: c.Run}
	if !c.Gated {
		return s, nil
	}
	var err error
	if s.guarded, err = fencing.NewScript(sellBody); err != nil {
		return nil, err
	}
	s.admits, err = fencing.NewRedisGate(s.client)
	return s, err
}

// sellBody writes the stock, and enters in the journal who did so.
//
//	KEYS[1] stock    KEYS[2] journal
//	ARGV[1] what is left, or '' to count down    ARGV[2] units    ARGV[3] token    ARGV[4] id
const sellBody = `
local left = ARGV[1]
if left == '' then
  left = redis.call('DECRBY', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], left)
end
redis.call('RPUSH', KEYS[2], ARGV[4] .. ' ' .. ARGV[3] .. ' ' .. ARGV[2] .. ' ' .. left)
return 1`

var (
	plainSell = redis.NewScript(sellBody)
	lookAt    = redis.NewScript(`
local sold = 0
for _, line in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
  sold = sold + tonumber(string.match(line, '^%S+ %S+ (%S+)'))
end
return {tonumber(redis.call('GET', KEYS[1])), sold}`)
)

// keys are those of a resource's stock and journal.
func (s *redisStore) keys(sku string) []string {
	return []string{"stock:" + s.run + ":{" + sku + "}", "sales:" + s.run + ":{" + sku + "}"}
}

func (s *redisStore) skus() string { return "skus:" + s.run }

func (s *redisStore) prepare(ctx context.Context, skus []string, initial int64) error {
	_, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, s.skus())
		for _, sku := range skus {
			keys := s.keys(sku)
			p.RPush(ctx, s.skus(), sku)
			p.Set(ctx, keys[0], initial, 0)
			p.Del(ctx, keys[1])
		}
		return nil
	})
	return err
}

func (s *redisStore) gate() fencing.Gate {
	if s.admits == nil {
		return open
	}
	return s.admits
}

func (s *redisStore) stock(ctx context.Context, sku string) (int64, error) {
	return s.client.Get(ctx, s.keys(sku)[0]).Int64()
}

func (s *redisStore) sell(ctx context.Context, sale sale) error {
	left := ""
	if sale.Set {
		left = fmt.Sprint(sale.Found - sale.Units)
	}
	args := []any{left, sale.Units, sale.Token, sale.ID}
	if s.admits == nil {
		return plainSell.Run(ctx, s.client, s.keys(sale.SKU), args...).Err()
	}
	return s.admits.Run(ctx, sale.SKU, redlock.Token(sale.Token), s.guarded, s.keys(sale.SKU), args...).Err()
}

func (s *redisStore) look(ctx context.Context) (map[string]shelf, error) {
	skus, err := s.client.LRange(ctx, s.skus(), 0, -1).Result()
	if err != nil {
		return nil, err
	}
	shelves := map[string]shelf{}
	for _, sku := range skus {
		reply, err := lookAt.Run(ctx, s.client, s.keys(sku)).Int64Slice()
		if err != nil {
			return nil, err
		}
		shelves[sku] = shelf{Left: reply[0], Sold: reply[1]}
	}
	return shelves, nil
}

func (s *redisStore) journal(ctx context.Context) (entries []entry, err error) {
	skus, err := s.client.LRange(ctx, s.skus(), 0, -1).Result()
	if err != nil {
		return nil, err
	}
	for _, sku := range skus {
		lines, err := s.client.LRange(ctx, s.keys(sku)[1], 0, -1).Result()
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			e := entry{SKU: sku}
			if _, err := fmt.Sscan(strings.TrimSpace(line), &e.ID, &e.Token, &e.Units, &e.Left); err != nil {
				return nil, fmt.Errorf("read the journal's %q: %w", line, err)
			}
			entries = append(entries, e)
		}
	}
	return entries, nil
}

func (s *redisStore) close() error { return s.client.Close() }
