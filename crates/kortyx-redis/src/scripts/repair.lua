-- Says again what indexes and locators should say of a session's checkpoints and of some of its runs.
-- q: runs (their ids), turns (true: of its checkpoints too)
-- Replies: how many questions and checkpoints that was
local q = cjson.decode(ARGV[2])

local function repair_run(run)
  local ttl = math.max(redis.call('PTTL', run.key), 0)
  K.hint('set', K.locator('r', run.id), ttl, K.digest)
  if run.has_said and ttl > 0 then K.hint('ttl', K.key('out', run.id), ttl) end
  if run.old_index then K.hint('+', run.old_index, select(2, K.place(run)), run.old_member) end
  local ids = K.question_ids(run)
  for _, id in ipairs(ids) do K.hint('set', K.locator('q', id), ttl, K.digest .. run.id) end
  for _, it in ipairs(K.pending(run)) do K.index_question(run, it, '+') end
  return #ids
end

local function repair_turns()
  local members = redis.call('ZRANGE', K.key('t'), 0, -1)
  for _, member in ipairs(members) do K.hint('set', K.locator('c', K.turn_id(member)), K.idle * 2, K.digest) end
  if #members > 0 then
    K.settle_turns()
    local since = tonumber(redis.call('HGET', KEYS[1], 'idle') or '')
    if since then K.hint('>', K.index('idle'), since, K.session_member()) end
  end
  return #members
end

return K.once(function()
  local questions = 0
  for _, id in ipairs(q.runs) do
    local run = K.load_run(id)
    if run then questions = questions + repair_run(run) end
  end
  return { questions, q.turns and repair_turns() or 0 }
end)
