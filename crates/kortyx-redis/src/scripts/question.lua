-- Reads one question.
-- KEYS[1]  the session's hash
-- ARGV     offset of the clock (ms), the question's id, its run's
-- Replies: the time, and of the run: its head, fixed part and questions' records; of the question: its rest, answer and record
local time = redis.call('TIME')
local id = ARGV[2]
local values = redis.call('HMGET', string.sub(KEYS[1], 1, -2) .. 'r:' .. ARGV[3], 'h', 'f', 'k', 'q:' .. id, 'a:' .. id, 'd:' .. id)
values[7] = math.floor((time[1] * 1000000 + time[2]) / 1000) + ARGV[1]
return values
