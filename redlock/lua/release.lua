-- release: ends an acquisition on one node, whether or not the node ever accepted it.
--
--   KEYS[1] lock     KEYS[2] fence
--   ARGV[1] owner    ARGV[2] fence number of the lease    ARGV[3] fence ttl, ms
--   ARGV[4] '1' when the lock may be there with a fence below the number: the number is that of a
--           second proposal, or was raised by an extension
--   ARGV[5] '1' to wake those who wait: for a lease that was held. An attempt that came to nothing
--           wakes nobody, or two that lose would wake each other without end.
--   ARGV[6] channel to tell of it as well, if any: of those who watch the name and do not wait for
--           it, who must not be counted among the subscribers woken
--
-- Deletes the lock if it is ours, raises the fence to the number, so that no delayed acquire or
-- extend brings the lock back. Where the lock is ours its acquire has already raised the fence, but
-- for the cases of ARGV[4].
-- Returns {1 if a lock was deleted, subscribers woken}.
-- Safe to run twice. The common case costs three calls.

local ours = redis.call('GET', KEYS[1]) == ARGV[1]
if ours then
  redis.call('DEL', KEYS[1])
end

if not ours or ARGV[4] == '1' then
  local old = redis.call('GET', KEYS[2]) or ''
  local cut = string.find(old, ' ', 1, true)
  local fence = cut and string.sub(old, 1, cut - 1) or old
  local state = cut and string.sub(old, cut) or ''
  if fence ~= '' and not tonumber(fence) then
    return redis.error_reply('BADFENCE ' .. fence)
  end
  if fence == '' or tonumber(fence) < tonumber(ARGV[2]) then
    redis.call('SET', KEYS[2], ARGV[2] .. state, 'PX', ARGV[3])
  end
end

if ours and ARGV[6] then
  redis.call('PUBLISH', ARGV[6], ARGV[1])
end
if ours and ARGV[5] == '1' then
  return {1, redis.call('PUBLISH', KEYS[1], ARGV[1])}
end
return {ours and 1 or 0, 0}
