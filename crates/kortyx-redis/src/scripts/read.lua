-- Reads by id.
-- q: kind ('run', 'brief', 'questions', 'checkpoint', 'content', 'head', 'checkpoints', 'session'), ids; of questions: [id, run, id,
--    run, …]
-- Replies: [row], an empty one for what is not there; of 'content': the checkpoint as it is stored, and its session; of 'brief': the
--          run without what it carries; of 'session': how many of its runs may go on, its head's turn, time and id, its own id
local q = cjson.decode(ARGV[2])

local function checkpoints(ids)
  local rows = {}
  for i, id in ipairs(ids) do rows[i] = { '\0c', id } end
  return rows
end

return K.once(function()
  local rows = {}
  if q.kind == 'head' then return checkpoints({ (K.head()) }) end
  if q.kind == 'checkpoint' then return checkpoints(q.ids) end
  if q.kind == 'checkpoints' then
    local members = redis.call('ZRANGE', K.key('t'), 0, -1)
    for i, member in ipairs(members) do members[i] = K.turn_id(member) end
    return checkpoints(members)
  end
  if q.kind == 'content' then
    local content = redis.call('HGET', K.key('c'), q.ids[1])
    return content and { { content, K.session_id() } } or {}
  end
  if q.kind == 'run' then
    for i, id in ipairs(q.ids) do rows[i] = { '\0r', id, 1 } end
    return rows
  end
  if q.kind == 'session' then
    local last = redis.call('ZREVRANGE', K.key('t'), 0, 0, 'WITHSCORES')
    if not last[1] then return {} end
    local active = redis.call('ZLEXCOUNT', K.key('o'), '[r', '[s')
    return { { active, last[2], K.int(K.turn_created(last[1])), K.turn_id(last[1]), K.session_id() } }
  end
  if q.kind == 'brief' then
    for i, id in ipairs(q.ids) do
      local run = K.load_run(id)
      rows[i] = run and { run.h, run.f, run.w, run.reason or false, false } or {}
    end
    return rows
  end
  for i = 1, #q.ids, 2 do
    local run = K.load_run(q.ids[i + 1])
    local is_there = run and K.question(run, q.ids[i])
    rows[#rows + 1] = is_there and { '\0q', run.id, q.ids[i] } or {}
  end
  return rows
end)
