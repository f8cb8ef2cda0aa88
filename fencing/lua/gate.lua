-- gate: admits the token of a write, or refuses it. It stands before the body of every script
-- of the Redis gate, joined to one line, so that check and write are one step, and so that line
-- numbers in errors are those of the body.
--
--   KEYS[last]    fence of the resource
--   ARGV[last-1]  token    ARGV[last]  fence ttl, ms; 0: none
--
-- Takes its own key and arguments away: the body finds KEYS and ARGV as its caller gave them.
-- A token >= the fence is admitted and becomes the fence. An older one ends the script here with
-- the error STALETOKEN and the fence, before anything was written. A fence that is no number
-- ends it with BADFENCE: what cannot be compared is refused.
do
  local ttl = table.remove(ARGV)
  local token = table.remove(ARGV)
  local key = table.remove(KEYS)
  local fence = redis.call('GET', key)
  if fence and not string.find(fence, '^%d+$') then
    return redis.error_reply('BADFENCE ' .. fence)
  end
  if fence and tonumber(fence) > tonumber(token) then
    return redis.error_reply('STALETOKEN ' .. fence)
  end
  if ttl ~= '0' then
    redis.call('SET', key, token, 'PX', ttl)
  elseif fence ~= token then
    redis.call('SET', key, token)
  end
end
