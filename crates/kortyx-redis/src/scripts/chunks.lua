-- Reads a piece of what a run said.
-- KEYS[1]  the session's hash
-- ARGV     the run's id, the places in its list of the first chunk and the last ('' for none)
-- Replies: nothing for no such run; its head, 1 with a complete response, the number of its last chunk, chunks
local base = string.sub(KEYS[1], 1, -2)
local stored = redis.call('HMGET', base .. 'r:' .. ARGV[1], 'h', 'o')
if not stored[1] then return {} end
local responded = redis.call('HEXISTS', base .. 'r:' .. ARGV[1], 'y')
if not stored[2] then return { stored[1], responded, 0, {} } end
local list = base .. 'out:' .. ARGV[1]
local chunks = ARGV[3] ~= '' and redis.call('LRANGE', list, ARGV[2], ARGV[3]) or {}
return { stored[1], responded, redis.call('LLEN', list), chunks }
