-- admit: writes nothing but the fence, which the gate in front has done.
--
-- Returns 1. Safe to run twice.

return 1
