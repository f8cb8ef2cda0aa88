-- inspect: what one node knows of a name. Changes nothing.
--
--   KEYS[1] lock     KEYS[2] fence
--
-- Returns {holder or '', ms left, fence or ''}.

return {
  redis.call('GET', KEYS[1]) or '',
  redis.call('PTTL', KEYS[1]),
  redis.call('GET', KEYS[2]) or '',
}
