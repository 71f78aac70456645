-- Ends a driver's turn: the run waits. Or, when it has answers that the driver did not see, gives those.
-- q: new {id, session, context, pairs} or run and fence; workflow, snapshot (payload), publish [question], withdraw [ask],
--    seen, checkpoint (absent: none)
-- Replies: 'saved' and the open questions, 'answered' and answers, 'cancelled', or 'expired'
local function is_waiting(run)
  for _, id in ipairs(pending_ids(run.id)) do
    if not question(id).is_due or redis.call('HEXISTS', key('q', id), 'default') == 1 then return true end
  end
  return false
end

-- The checkpoint of the turn, with the questions as they are now and what a run that starts from it needs to know.
local function append_turn(run, open)
  local fields = checkpoint_fields(q.checkpoint)
  local rows = {}
  for i, it in ipairs(open) do rows[i] = question_row(it[3]) end
  local more = { 'run', run.id }
  if #open > 0 then
    more = { 'run', run.id, 'snapshot', ARGV[q.snapshot], 'wid', run.wid, 'wver', run.wver, 'wfp', run.wfp, 'pin', run.pin,
      'answers', int(run.answers), 'pairs', run.pairs }
  end
  for _, part in ipairs(more) do fields[#fields + 1] = part end
  append(q.checkpoint.id, fields, rows)
end

return once(function()
  local run = nil
  if q.new then
    check_new('r', q.new.id, 'run')
  else
    run = leased()
  end
  check_publish(run, q.publish, q.withdraw)
  if q.checkpoint then check_new('c', q.checkpoint.id, 'checkpoint') end
  if q.new then
    if #q.publish == 0 then refuse('invalid', 'a new run that asks nothing cannot wait') end
    run = add_run(q.new, q.workflow, ARGV[q.snapshot])
  else
    if run.is_stopped then
      end_run(run, 'cancelled', 'cancelled', nil, nil)
      return { 'cancelled' }
    end
    local answers = unseen(run, q.seen)
    if #answers > 0 then return { 'answered', answers } end
    has_written = true
    bind(run, q.workflow)
    withdraw_all(run, q.withdraw)
  end
  for _, new in ipairs(q.publish) do publish(run, new, later(new.ttl)) end
  if not is_waiting(run) then
    end_run(run, 'expired', 'expired', nil, nil)
    return { 'expired' }
  end
  if not q.new then
    run.status, run.till, run.updated = 'suspended', nil, now
    store_run(run)
    redis.call('HSET', key('r', run.id), 'snap', ARGV[q.snapshot])
    redis.call('DEL', key('e', run.id), key('i', run.id))
  end
  local open = open_questions(run.id)
  if q.checkpoint then append_turn(run, open) end
  return { 'saved', open }
end)
