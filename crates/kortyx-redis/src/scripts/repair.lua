-- Says again everything that indexes and locators should say of a session.
-- Replies: how many runs, questions and checkpoints it has
local function repair_run(id)
  local run = load_run(id)
  if not run then return 0 end
  local ttl = math.max(redis.call('PTTL', key('r', id)), 0)
  locate('r', id, ttl)
  local name, score = place(run)
  if name then hint('+', name, score, place_member(run)) end
  local questions = redis.call('LRANGE', key('n', id), 0, -1)
  for _, question_id in ipairs(questions) do
    local it = question(question_id)
    if it then
      locate('q', question_id, ttl)
      if it.is_pending then index_question(it, '+') end
    end
  end
  return #questions
end

return once(function()
  if redis.call('EXISTS', KEYS[1]) == 0 then return { 0, 0, 0 } end
  local runs, questions = 0, 0
  for _, name in ipairs({ 'a', 'd' }) do
    for _, id in ipairs(redis.call('ZRANGE', key(name), 0, -1)) do
      runs = runs + 1
      questions = questions + repair_run(id)
    end
  end
  local turns = redis.call('ZRANGE', key('t'), 0, -1)
  for _, id in ipairs(turns) do locate('c', id, env.idle * 2) end
  if #turns > 0 then settle_turns() end
  local since = tonumber(redis.call('HGET', KEYS[1], 'idle') or '')
  if since then hint('>', index('idle'), since, session_member()) end
  return { runs, questions, #turns }
end)
