-- Starts a new session from a checkpoint of another, which the caller read.
-- q: session, checkpoint (id of the new one), run (id of a new run), reissue [{from, id, token, digest (payload)}], source,
--    source_session, content (payload: the checkpoint as it is stored)
-- Replies: 'exists', 'expired' question, 'mismatched', or 'done' checkpoint, open questions
local q = cjson.decode(ARGV[2])

return K.once(function()
  if redis.call('EXISTS', KEYS[1]) == 1 then return { 'exists' } end
  local basis, ids = K.read_turn(ARGV[q.content]), {}
  local problem, questions = K.reopening(basis.open, q.reissue)
  if problem then return problem end
  K.check_turn(q.checkpoint, ids)
  if #questions == 0 then K.check_elsewhere(ids) else K.check_reopen(questions, q.run, ids) end
  K.make_session(q.session, 0)
  local open = K.reopen(basis.meta, questions, q.run, q.session)
  local meta = { psession = q.source_session, forked = q.source }
  local run = #questions > 0 and K.load_run(q.run)
  if run then
    meta.run, meta.snapshot, meta.definition, meta.answers = q.run, basis.meta.snapshot, basis.meta.definition, basis.meta.answers
  end
  K.append(q.checkpoint, q.session, meta, basis.rest, run, run and run.live or {})
  return { 'done', { '\0c', q.checkpoint }, open }, true
end)
