-- wake: wakes this process' own listener on the node, to have it look at what it should listen to.
--
--   KEYS[1] the listener's own channel
--
-- Returns the number of subscribers.

return redis.call('PUBLISH', KEYS[1], '')
