-- Removes a run that ended long enough ago.
-- q: run, index and member (where it was found), age (ms)
-- Replies: 'removed' or 'kept'
return once(function()
  local run = load_run(q.run)
  if not run or not run.is_terminal or place_member(run) ~= q.member then
    hint('-', q.index, 0, q.member)
    return { 'kept' }
  end
  if run.updated > now - q.age then return { 'kept' } end
  remove_run(run)
  return { 'removed' }
end)
