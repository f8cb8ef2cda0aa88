-- look: whether a name that was taken may be free by now, for one who waits for it.
--
--   KEYS[1] lock     KEYS[2] line of the processes that wait
--   ARGV[1] what the lock holds for a moment while it is kept for this process: see release.lua
--   ARGV[2] ttl of the line, ms, to keep it for as long; '' to leave that as it is
--
-- Returns {holder, ms left}: {'', -2} when it is free, or kept for us. It costs half of an acquisition
-- that is refused, and nothing has to be taken back.

if ARGV[2] ~= '' then
  redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
local holder = redis.call('GET', KEYS[1])
if not holder or holder == ARGV[1] then
  return {'', -2}
end
return {holder, redis.call('PTTL', KEYS[1])}
