-- Reads an index for what is due.
-- KEYS[1]  the index
-- ARGV     offset of the clock (ms), age (ms): entries up to now less the age; at most this many; 1 for highest first, from age
-- Replies: [member, score]
local time = redis.call('TIME')
local now = math.floor((tonumber(time[1]) * 1000000 + tonumber(time[2])) / 1000) + tonumber(ARGV[1])
if ARGV[4] == '1' then
  return redis.call('ZRANGE', KEYS[1], '+inf', ARGV[2], 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[3])
end
local until_then = string.format('%.0f', now - tonumber(ARGV[2]))
return redis.call('ZRANGE', KEYS[1], '-inf', until_then, 'BYSCORE', 'LIMIT', 0, ARGV[3])
