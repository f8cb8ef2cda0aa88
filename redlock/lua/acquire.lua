-- acquire: one node's vote for one acquisition of a name.
--
--   KEYS[1] lock     KEYS[2] fence
--   ARGV[1] owner    ARGV[2] proposed token    ARGV[3] ttl, ms    ARGV[4] fence ttl, ms
--   ARGV[5] the last of the tokens that are reserved, of which the proposed one is the first
--   ARGV[6] what the lock holds for a moment while it is kept for this process: see release.lua
--
-- Accepted when the lock is ours, or when it is free, or kept for us, and fence < token, strictly: a fence that
-- has reached the token says that this acquisition, or a later one, has been here and is over.
-- The fence becomes the last of the range.
-- Returns {1, state}, {0, holder, ms left} when taken, or {-1, fence} when the token is too old;
-- the error BADFENCE and the fence where that is no number.
-- Safe to run twice. The common case costs two calls.

local owner, token, last = ARGV[1], ARGV[2], ARGV[5]

local fresh, kept = redis.call('SET', KEYS[1], owner, 'NX', 'PX', ARGV[3]), false
if not fresh then
  local holder = redis.call('GET', KEYS[1])
  kept = holder == ARGV[6] -- and stays kept if the token is too old: a higher one comes next
  if holder == owner then
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  elseif not kept then
    return {0, holder, redis.call('PTTL', KEYS[1])}
  end
end

local old = redis.call('SET', KEYS[2], last, 'PX', ARGV[4], 'GET')
if not old then
  if kept then
    redis.call('SET', KEYS[1], owner, 'PX', ARGV[3])
  end
  return {1, ''}
end

-- The fence key holds "fence" or "fence token sequence state"; what follows the fence is kept.
local cut = string.find(old, ' ', 1, true)
local fence = cut and string.sub(old, 1, cut - 1) or old
local state = cut and string.sub(old, cut + 1) or ''

if not tonumber(fence) then -- what cannot be compared is refused, and stays as it is
  redis.call('SET', KEYS[2], old, 'PX', ARGV[4])
  if fresh then
    redis.call('DEL', KEYS[1])
  end
  return redis.error_reply('BADFENCE ' .. fence)
end

if (fresh or kept) and tonumber(fence) >= tonumber(token) then
  redis.call('SET', KEYS[2], old, 'PX', ARGV[4])
  if fresh then
    redis.call('DEL', KEYS[1])
  end
  return {-1, fence}
end

-- A second proposal of ours may find a fence that a losing rival's release has raised further.
if tonumber(fence) > tonumber(last) then
  redis.call('SET', KEYS[2], old, 'PX', ARGV[4])
elseif cut then
  redis.call('SET', KEYS[2], last .. ' ' .. state, 'PX', ARGV[4])
end
if kept then
  redis.call('SET', KEYS[1], owner, 'PX', ARGV[3])
end
return {1, state}
