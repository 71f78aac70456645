-- Writes the version of the schema, and refuses one that is newer.
-- KEYS[1]  the version's key
-- ARGV     the version that this code writes
-- Replies: the version that is in force
local stored = redis.call('GET', KEYS[1])
if stored and not tonumber(stored) then return stored end
if stored and tonumber(stored) >= tonumber(ARGV[1]) then return stored end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
