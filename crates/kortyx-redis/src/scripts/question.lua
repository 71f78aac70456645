-- Reads one question.
-- KEYS[1]  the session's hash; or, for a place that is not known, the question's locator
-- ARGV     offset of the clock (ms), the question's id, its run's ('': the locator says it), 1 on one server without slots
-- Replies: the time, and of the run: its head, fixed part and questions' records; of the question: its rest, answer and record;
--          where the locator says it is (no more than that where this is another slot)
local time = redis.call('TIME')
local id, run, tag = ARGV[2], ARGV[3], string.sub(KEYS[1], 1, -2)
local place = false
if run == '' then
  place = redis.call('GET', KEYS[1])
  if not place then return { false } end
  local part = string.match(KEYS[1], '^(.-{%x+}):')
  local there = string.gsub(part, '{%x+}', '{' .. string.sub(place, 1, 3) .. '}')
  if there ~= part and ARGV[4] ~= '1' then return { false, false, false, false, false, false, false, place } end
  run, tag = string.sub(place, 33), there .. ':' .. string.sub(place, 1, 32) .. ':'
end
local values = redis.call('HMGET', tag .. 'r:' .. run, 'h', 'f', 'k', 'q:' .. id, 'a:' .. id, 'd:' .. id)
values[7] = math.floor((time[1] * 1000000 + time[2]) / 1000) + ARGV[1]
values[8] = place
return values
