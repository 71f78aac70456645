-- Appends entries and chunks, publishes and withdraws questions, reads answers; completes the response.
-- ARGV[2]  packed: the run's id, fence, answers seen, count of entries, 1 with a response; then questions and keys to withdraw, see
--          publish.lua
-- ARGV[3…]  with a response what it ended with, the checkpoint's id ('' for none) and what it is given with; entries, the rest
--           of each question, chunks
-- Replies: answers, published questions, whether the run was asked to stop
local run_id, fence, seen, count, responds, asks_from = struct.unpack('>I2c0ddI4B', ARGV[2])
local first = responds == 1 and 6 or 3
local new, withdraw = K.read_asks(ARGV[2], asks_from, first + count)
local turn = responds == 1 and ARGV[4] ~= '' and ARGV[4]

local function check(run)
  local ids = {}
  K.check_lease(run, fence)
  if responds == 1 and redis.call('HEXISTS', run.key, 'y') == 1 then K.refuse('invalid', "the run's response is complete") end
  if turn then K.check_turn(turn, ids) end
  K.check_publish(run, new, withdraw, ids)
end

return K.once_for(run_id, function(run)
  check(run)
  K.withdraw_all(run, withdraw)
  local published = {}
  for i, it in ipairs(new) do
    K.publish(run, it, K.later(it.ttl))
    published[i] = { '\0q', run.id, it.id }
  end
  for i = 1, count do K.add(run.fields, 'e' .. run.entries + i, ARGV[first - 1 + i]) end
  run.entries = run.entries + count
  if responds == 1 then K.add(run.fields, 'y', ARGV[3]) end
  K.say(run, first + count + #new)
  if turn then K.append_turn(turn, ARGV[5], run, nil) end
  run.updated = K.now
  K.change(run)
  return { K.unseen(run, seen), published, run.stop }
end)
