-- Ends a run. Or, when it has answers that the driver did not see, gives those.
-- q: new {id, session, context, pairs} or run and fence; workflow, status, outcome (payload), reason, seen,
--    checkpoint (absent: none)
-- Replies: 'done', or 'answered' and answers
return once(function()
  local run = nil
  if q.new then
    check_new('r', q.new.id, 'run')
  else
    run = leased()
  end
  if q.checkpoint then check_new('c', q.checkpoint.id, 'checkpoint') end
  if q.new then
    run = add_run(q.new, q.workflow, '')
  else
    local answers = unseen(run, q.seen)
    if #answers > 0 then return { 'answered', answers } end
    bind(run, q.workflow)
  end
  local closing = q.status == 'cancelled' and 'cancelled' or 'superseded'
  end_run(run, q.status, closing, q.reason, ARGV[q.outcome])
  if q.checkpoint then
    local fields = checkpoint_fields(q.checkpoint)
    fields[#fields + 1] = 'run'
    fields[#fields + 1] = run.id
    append(q.checkpoint.id, fields, {})
    settle_session()
  end
  return { 'done' }
end)
