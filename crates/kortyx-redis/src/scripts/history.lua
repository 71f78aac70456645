-- Reads all that is kept of a run but what it said.
-- q: run
-- Replies: the run, its snapshot, its entries behind their number, its questions, oldest first; nothing where there is no such run
local q = cjson.decode(ARGV[2])

local function by_place(a, b)
  return a.place < b.place
end

return K.once(function()
  local run = K.load_run(q.run)
  if not run then return {} end
  -- No text that is stored may stand first in a list: one might start like the name of a row.
  local entries, questions = { run.entries }, {}
  for i = 1, run.entries do entries[i + 1] = redis.call('HGET', run.key, 'e' .. i) end
  for i, id in ipairs(K.question_ids(run)) do questions[i] = K.question(run, id) end
  table.sort(questions, by_place)
  for i, it in ipairs(questions) do questions[i] = { '\0q', run.id, it.id } end
  return { { '\0r', run.id, 1 }, redis.call('HGET', run.key, 's'), entries, questions }
end)
