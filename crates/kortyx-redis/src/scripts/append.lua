-- Appends a checkpoint to a session, which is created when new.
-- q: session, checkpoint (its id), rest (payload: what it is given with)
-- Replies: the checkpoint
local q = cjson.decode(ARGV[2])

return K.once(function()
  local ids = {}
  K.check_turn(q.checkpoint, ids)
  K.check_elsewhere(ids)
  K.make_session(q.session, 0)
  K.append(q.checkpoint, q.session, {}, ARGV[q.rest], nil, {})
  return { '\0c', q.checkpoint }, true
end)
