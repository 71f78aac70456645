-- Takes the session back to a checkpoint: later ones go, runs end, what was open there is open again.
-- q: checkpoint, run (id of a new run), reissue [{from, id, token, digest (payload)}]
-- Replies: 'unknown', 'driven' run, 'expired' question, 'mismatched', or 'done' head, abandoned, superseded, open questions
local q = cjson.decode(ARGV[2])

local function open_in_session()
  local open = {}
  for _, id in ipairs(K.active_runs()) do
    for _, it in ipairs(K.open_questions(K.load_run(id))) do open[#open + 1] = it end
  end
  return open
end

local function driven_run()
  for _, id in ipairs(K.active_runs()) do
    if K.is_driven(K.load_run(id)) then return id end
  end
  return nil
end

-- Cancels the session's runs and gives the questions that were open and are superseded.
local function supersede()
  local superseded = {}
  for _, id in ipairs(K.active_runs()) do
    for _, it in ipairs(K.end_run(K.load_run(id), K.CANCELLED_RUN, K.SUPERSEDED, 'its session was rolled back', nil)) do
      if it.status == K.SUPERSEDED then superseded[#superseded + 1] = { '\0q', id, it.id } end
    end
  end
  return superseded
end

-- Removes the checkpoints after a turn; gives them, newest first.
local function abandon(turn)
  local abandoned = {}
  for _, member in ipairs(redis.call('ZREVRANGEBYSCORE', K.key('t'), '+inf', '(' .. turn)) do
    abandoned[#abandoned + 1] = K.checkpoint_row(K.turn_id(member))
    K.remove_turn(member)
  end
  K.settle_turns()
  return abandoned
end

return K.once(function()
  local it = K.checkpoint(q.checkpoint)
  if not it then return { 'unknown' } end
  local last = K.head()
  if last == q.checkpoint then
    return { 'done', { '\0c', last }, {}, {}, open_in_session() }
  end
  local driven, ids = driven_run(), {}
  if driven then return { 'driven', driven } end
  local problem, questions = K.reopening(it.open, q.reissue)
  if problem then return problem end
  K.check_reopen(questions, q.run, ids)
  local superseded = supersede()
  local abandoned = abandon(it.meta.turn)
  local open = K.reopen(it.meta, questions, q.run, K.session_id())
  K.is_session_changed = true
  return { 'done', { '\0c', q.checkpoint }, abandoned, superseded, open }, true
end)
