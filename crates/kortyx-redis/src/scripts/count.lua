-- Counts what a session and some of its runs hold.
-- q: runs (their ids), turns (true: its checkpoints too)
-- Replies: the status of each run that is there, how many of their questions are open, how many checkpoints there are
local q = cjson.decode(ARGV[2])

return K.once(function()
  local statuses, open = {}, 0
  for _, id in ipairs(q.runs) do
    local run = K.load_run(id)
    if run then
      statuses[#statuses + 1] = run.status
      open = open + #K.open_questions(run)
    end
  end
  return { statuses, open, q.turns and redis.call('ZCARD', K.key('t')) or 0 }
end)
