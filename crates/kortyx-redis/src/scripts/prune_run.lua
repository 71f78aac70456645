-- Removes a run that ended long enough ago.
-- q: run, index and member (where it was found), age (ms)
-- Replies: 'removed' or 'kept'
local q = cjson.decode(ARGV[2])

return K.once(function()
  local run = K.load_run(q.run)
  if not run or not K.is_terminal(run) or run.old_member ~= q.member then
    K.hint('-', q.index, 0, q.member)
    return { 'kept' }
  end
  if run.updated > K.now - q.age then return { 'kept' } end
  K.remove_run(run)
  return { 'removed' }, true
end)
