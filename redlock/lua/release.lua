-- release: ends an acquisition on one node, whether or not the node ever accepted it.
--
--   KEYS[1] lock     KEYS[2] fence     KEYS[3] line of the processes that wait, where it matters
--   ARGV[1] owner    ARGV[2] fence number of the lease    ARGV[3] fence ttl, ms
--   ARGV[4] '1' when the lock may be there with a fence below the number: the number is that of a
--           second proposal, or was raised by an extension
--   ARGV[5] '1' to wake those who wait: for a lease that was held. An attempt that came to nothing
--           wakes nobody, or two that lose would wake each other without end.
--   ARGV[6] channel to tell of it as well, if any: of those who watch the name and do not wait for
--           it, who must not be counted among the subscribers woken; '' for none
--   with KEYS[3] only:
--   ARGV[7] this process     ARGV[8] its place in the line, 16 digits; '' to leave the line
--   ARGV[9] ttl of the line, ms     ARGV[10] how long the lock is kept for the next in line, ms
--
-- Deletes the lock if it is ours, raises the fence to the number, so that no delayed acquire or
-- extend brings the lock back. Where the lock is ours its acquire has already raised the fence, but
-- for the cases of ARGV[4].
--
-- The line is "place:process place:process …", and who has the lowest place is first: the token that the
-- process had last, so that all nodes agree, and no clock matters. An attempt that came to nothing lines up.
-- A lease that ends lines up again, or leaves, and where
-- another process is in it the lock is not deleted but kept for the first: it holds "next in line/process"
-- for a moment, in which only that one can acquire it. It is told on the channel "lock process", and so is
-- the second, in case the first has gone; the others are left in peace. All of this is for order among those
-- who wait, and safety does not hang on it: to all but one the lock is merely taken for a moment longer.
--
-- Returns {1 if a lock was deleted, subscribers woken}, or {2, other processes in line} where it is kept.
-- Safe to run twice. The common case costs three calls.

local ours = redis.call('GET', KEYS[1]) == ARGV[1]
local others

if KEYS[3] then
  local me, held, line = ARGV[7], ARGV[5] == '1', {}
  for entry in string.gmatch(redis.call('GET', KEYS[3]) or '', '[^ ]+') do
    if string.match(entry, ':(.*)') ~= me then
      line[#line + 1] = entry
    end
  end
  table.sort(line)
  if ours and held and line[1] then
    others = #line
    local first = string.match(line[1], ':(.*)')
    redis.call('SET', KEYS[1], 'next in line/' .. first, 'PX', ARGV[10])
    for i = 1, math.min(others, 2) do
      redis.call('PUBLISH', KEYS[1] .. ' ' .. string.match(line[i], ':(.*)'), ARGV[1] .. ' ' .. first)
    end
    table.remove(line, 1)
  elseif ours then
    redis.call('DEL', KEYS[1])
  end
  if ARGV[8] ~= '' then
    line[#line + 1] = ARGV[8] .. ':' .. me
  end
  if line[1] then
    redis.call('SET', KEYS[3], table.concat(line, ' '), 'PX', ARGV[9])
  else
    redis.call('DEL', KEYS[3])
  end
elseif ours then
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

if ours and ARGV[6] and ARGV[6] ~= '' then
  redis.call('PUBLISH', ARGV[6], ARGV[1])
end
if others then
  return {2, others}
end
if ours and ARGV[5] == '1' then
  return {1, redis.call('PUBLISH', KEYS[1], ARGV[1])}
end
return {ours and 1 or 0, 0}
