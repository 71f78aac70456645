-- Takes the session back to a checkpoint: later ones go, runs end, what was open there is open again.
-- q: checkpoint, run (id of a new run), reissue [{from, id, token}]
-- Replies: 'unknown', 'driven' run, 'expired' question, 'mismatched', or 'done' head, abandoned, superseded, open questions
local function open_in_session()
  local open = {}
  for _, id in ipairs(redis.call('ZRANGE', key('a'), 0, -1)) do
    for _, it in ipairs(open_questions(id)) do open[#open + 1] = it end
  end
  return open
end

local function driven_run()
  for _, id in ipairs(redis.call('ZRANGE', key('a'), 0, -1)) do
    if load_run(id).is_driven then return id end
  end
  return nil
end

-- Cancels the session's runs and gives the questions that were open and are superseded.
local function supersede()
  local superseded = {}
  for _, id in ipairs(redis.call('ZRANGE', key('a'), 0, -1)) do
    local open = end_run(load_run(id), 'cancelled', 'superseded', 'its session was rolled back', nil)
    for _, it in ipairs(open) do
      if it.status == 'superseded' then superseded[#superseded + 1] = { '@', 'q', it.id } end
    end
  end
  return superseded
end

-- Removes the checkpoints after a turn; gives them, newest first.
local function abandon(turn)
  local abandoned = {}
  for _, id in ipairs(redis.call('ZREVRANGEBYSCORE', key('t'), '+inf', '(' .. turn)) do
    abandoned[#abandoned + 1] = checkpoint_row(id)
    remove_checkpoint(id)
  end
  settle_turns()
  return abandoned
end

return once(function()
  local it = checkpoint(q.checkpoint)
  if not it then return { 'unknown' } end
  local last = head()
  if last == q.checkpoint then
    return { 'done', { '@', 'c', last }, {}, {}, open_in_session() }
  end
  local driven = driven_run()
  if driven then return { 'driven', driven } end
  local problem, questions = reopening(it.open, q.reissue)
  if problem then return problem end
  check_reopen(questions, q.run)
  has_written = true
  local superseded = supersede()
  local abandoned = abandon(it.named.turn)
  local open = reopen(it.named, questions, q.run, session_id())
  settle_session()
  return { 'done', { '@', 'c', q.checkpoint }, abandoned, superseded, open }
end)
