-- Starts a new session from a checkpoint of another, which the caller read.
-- q: session, checkpoint (id of the new one), run (id of a new run), reissue [{from, id, token}], source, source_session,
--    content (payload: the checkpoint as it is stored)
-- Replies: 'exists', 'expired' question, 'mismatched', or 'done' checkpoint, open questions
local KEPT = { nodes = true, workflow = true, streams = true, state = true, label = true, version = true }
local BASIS = { 'snapshot', 'wid', 'wver', 'wfp', 'pin', 'answers', 'pairs' }

return once(function()
  if redis.call('EXISTS', KEYS[1]) == 1 then return { 'exists' } end
  local content = cmsgpack.unpack(ARGV[q.content])
  local named = {}
  for i = 1, #content[2], 2 do named[content[2][i]] = content[2][i + 1] end
  local problem, questions = reopening(content[3], q.reissue)
  if problem then return problem end
  check_reopen(questions, q.run)
  check_new('c', q.checkpoint, 'checkpoint')
  has_written = true
  make_session(q.session)
  local open = reopen(named, questions, q.run, q.session)
  local fields, rows = { 'psession', q.source_session, 'forked', q.source }, {}
  local function put(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  for name, value in pairs(named) do
    if KEPT[name] then put(name, value) end
  end
  if #questions > 0 then
    put('run', q.run)
    for _, name in ipairs(BASIS) do put(name, named[name]) end
  end
  for i, it in ipairs(open) do rows[i] = question_row(it[3]) end
  append(q.checkpoint, fields, rows)
  settle_session()
  return { 'done', { '@', 'c', q.checkpoint }, open }
end)
