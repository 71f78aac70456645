-- Appends entries and chunks, publishes and withdraws questions, reads answers.
-- ARGV[2]  packed: the run's id, fence, answers seen, count of entries; then questions and keys to withdraw, see publish.lua
-- ARGV[3…]  entries, the rest of each question, chunks
-- Replies: answers, published questions, whether the run was asked to stop
local run_id, fence, seen, count, asks_from = struct.unpack('>I2c0ddI4', ARGV[2])
local new, withdraw = K.read_asks(ARGV[2], asks_from, 3 + count)

return K.once_for(run_id, function(run)
  K.check_lease(run, fence)
  K.check_publish(run, new, withdraw, {})
  K.withdraw_all(run, withdraw)
  local published = {}
  for i, it in ipairs(new) do
    K.publish(run, it, K.later(it.ttl))
    published[i] = { '\0q', run.id, it.id }
  end
  for i = 1, count do K.add(run.fields, 'e' .. run.entries + i, ARGV[2 + i]) end
  run.entries = run.entries + count
  K.say(run, 3 + count + #new)
  run.updated = K.now
  K.change(run)
  return { K.unseen(run, seen), published, run.stop }
end)
