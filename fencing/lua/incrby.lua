-- incrby: adds to a counter, unless that would take it below a floor.
--
--   KEYS[1] data
--   ARGV[1] delta    ARGV[2] floor
--
-- The floor stops what goes down; a counter that is below it already may be raised.
-- Returns {1, new value}, or {0, value} when the floor forbids it. Not safe to run twice.

local value = redis.call('GET', KEYS[1]) or '0'
local old, delta, floor = tonumber(value), tonumber(ARGV[1]), tonumber(ARGV[2])
if not string.find(value, '^-?%d+$') then
  return redis.error_reply('ERR value is not an integer')
end
-- Lua's numbers are doubles.
if math.abs(old) > 9007199254740991 or math.abs(old + delta) > 9007199254740991 then
  return redis.error_reply('ERR value is outside of what scripts count exactly, 2^53-1 either way')
end
if delta < 0 and old + delta < floor then
  return {0, old}
end
return {1, redis.call('INCRBY', KEYS[1], ARGV[1])}
