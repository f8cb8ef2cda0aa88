-- set: stores a string.
--
--   KEYS[1] data
--   ARGV[1] value    ARGV[2] ttl, ms; 0: none
--
-- Returns OK. Safe to run twice.

if ARGV[2] == '0' then
  return redis.call('SET', KEYS[1], ARGV[1])
end
return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
