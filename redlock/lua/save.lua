-- save: stores a lease's state on one node.
--
--   KEYS[1] lock     KEYS[2] fence
--   ARGV[1] owner    ARGV[2] token    ARGV[3] sequence number of the save within the lease
--   ARGV[4] state    ARGV[5] fence ttl, ms    ARGV[6] channel to tell of it, if any
--
-- Accepted when no later acquisition can have been accepted here (the lock is ours, or
-- fence <= token) and the stored state is not newer than (token, sequence).
-- Returns {1}, or {-1, the higher number} when it is too late.
-- Safe to run twice.

local owner, token, sequence = ARGV[1], ARGV[2], ARGV[3]
local fence = token

local old = redis.call('GET', KEYS[2])
if old then
  local cut = string.find(old, ' ', 1, true)
  local held = cut and string.sub(old, 1, cut - 1) or old
  if not tonumber(held) then
    return redis.error_reply('BADFENCE ' .. held)
  end
  if tonumber(held) > tonumber(token) then
    if redis.call('GET', KEYS[1]) ~= owner then
      return {-1, held}
    end
    fence = held
  end
  if cut then
    local _, _, savedtoken, savedsequence = string.find(old, '^(%d+) (%d+) ', cut + 1)
    if tonumber(savedtoken) > tonumber(token)
      or (savedtoken == token and tonumber(savedsequence) > tonumber(sequence)) then
      return {-1, savedtoken}
    end
  end
end

redis.call('SET', KEYS[2], fence .. ' ' .. token .. ' ' .. sequence .. ' ' .. ARGV[4], 'PX', ARGV[5])
if ARGV[6] then
  redis.call('PUBLISH', ARGV[6], token .. ' ' .. sequence)
end
return {1}
