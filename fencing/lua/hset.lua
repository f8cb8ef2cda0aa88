-- hset: stores fields of a hash.
--
--   KEYS[1] data
--   ARGV    field, value, field, value …
--
-- A hundred fields in each call: unpack() of many arguments overflows Lua's stack. A key of
-- another type makes the first call fail, so nothing is half written.
-- Returns the number of fields that are new. Safe to run twice.

local added = 0
for i = 1, #ARGV, 200 do
  added = added + redis.call('HSET', KEYS[1], unpack(ARGV, i, math.min(i + 199, #ARGV)))
end
return added
