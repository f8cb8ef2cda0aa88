-- sell: takes a unit out of stock and keeps a record of it, in one step.
--
--   KEYS[1] stock    KEYS[2] record of the product
--   ARGV[1] what is left, as the seller has worked it out    ARGV[2] entry
--
-- It believes the seller on purpose: what makes that sound is the lease and the gate.

redis.call('SET', KEYS[1], ARGV[1])
return redis.call('RPUSH', KEYS[2], ARGV[2])
