-- Reads by id.
-- q: kind ('run', 'questions', 'checkpoint', 'content', 'head', 'checkpoints'), ids
-- Replies: [row], an empty one for what is not there; of 'content': the checkpoint as it is stored, and its session
return once(function()
  if q.kind == 'head' then
    local last = head()
    return last and { { '@', 'c', last } } or {}
  end
  local ids, rows = q.ids, {}
  if q.kind == 'checkpoints' then ids = redis.call('ZRANGE', key('t'), 0, -1) end
  for i, id in ipairs(ids) do
    if q.kind == 'run' then
      rows[i] = redis.call('EXISTS', key('r', id)) == 1 and { '@', 'r', id } or {}
    elseif q.kind == 'questions' then
      rows[i] = redis.call('EXISTS', key('q', id)) == 1 and { '@', 'q', id } or {}
    elseif q.kind == 'content' then
      local content = redis.call('HGET', key('c', nil), id)
      rows[i] = content and { content, session_id() } or {}
    else
      rows[i] = redis.call('HEXISTS', key('c'), id) == 1 and { '@', 'c', id } or {}
    end
  end
  return rows
end)
