-- Appends a checkpoint to a session, which is created when new.
-- q: session, checkpoint {id, label, nodes, workflow, version, streams, state (payload)}
-- Replies: the checkpoint
return once(function()
  check_new('c', q.checkpoint.id, 'checkpoint')
  has_written = true
  make_session(q.session)
  append(q.checkpoint.id, checkpoint_fields(q.checkpoint), {})
  settle_session()
  return { '@', 'c', q.checkpoint.id }
end)
