-- extend: one node's vote for holding a lease longer.
--
--   KEYS[1] lock     KEYS[2] fence
--   ARGV[1] owner    ARGV[2] fence number of the lease    ARGV[3] ttl, ms    ARGV[4] fence ttl, ms
--
-- Accepted when the lock is ours; or when it is missing and fence < number: then this node was
-- never reached or came back empty, and is healed.
-- Returns {1, version} extended or {2, version} healed, with the version of the stored state
-- ("token sequence", or nothing), so that the holder can put back what the node has forgotten;
-- {0, holder, ms left} when another holds it; or {-1, fence} when the lock is missing and the
-- fence says that a lease of this number is over here.
-- Safe to run twice.

local owner, number = ARGV[1], ARGV[2]

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= owner then
  return {0, holder, redis.call('PTTL', KEYS[1])}
end

local old = redis.call('GET', KEYS[2]) or ''
local cut = string.find(old, ' ', 1, true)
local fence = cut and string.sub(old, 1, cut - 1) or old
local state = cut and string.sub(old, cut) or ''
if fence ~= '' and not tonumber(fence) then
  return redis.error_reply('BADFENCE ' .. fence)
end
local reached = fence ~= '' and tonumber(fence) >= tonumber(number)

if not holder and reached then
  return {-1, fence}
end

redis.call('SET', KEYS[1], owner, 'PX', ARGV[3])
if reached then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
else
  redis.call('SET', KEYS[2], number .. state, 'PX', ARGV[4])
end
local _, _, version = string.find(state, '^ (%d+ %d+) ')
return {holder and 1 or 2, version or ''}
