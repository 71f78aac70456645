-- Checkpoints: append, read, remove. Only for scripts that need them.
--
-- What `c` holds of one: a byte with the version, and packed: a map of what is known of it, what it was given with as it came,
-- and its questions as they were, each a record, its rest and the fixed part of its run.

-- A checkpoint's name in `t`: when it was made, and its id.
function K.turn_member(created, id)
  return string.format('%015.0f.', created) .. id
end

function K.turn_id(member)
  return string.sub(member, 17)
end

function K.turn_created(member)
  return tonumber(string.sub(member, 1, 15))
end

function K.head()
  local last = redis.call('ZREVRANGE', K.key('t'), 0, 0, 'WITHSCORES')
  return last[1] and K.turn_id(last[1]), tonumber(last[2] or '-1')
end

-- Corrects what indexes say of the session's checkpoints after some were removed.
function K.settle_turns()
  local count = redis.call('ZCARD', K.key('t'))
  if count > 1 then
    K.hint('+', K.index('crowd'), count, K.session_member())
    K.hint('+', K.index('aged'), K.turn_created(redis.call('ZRANGE', K.key('t'), 0, 0)[1]), K.session_member())
  else
    K.hint('-', K.index('crowd'), 0, K.session_member())
    K.hint('-', K.index('aged'), 0, K.session_member())
  end
  if count == 0 then redis.call('HDEL', KEYS[1], 't') end
end

-- Refuses a checkpoint's id that is taken.
function K.check_turn(id, ids)
  if redis.call('HEXISTS', K.key('c'), id) == 1 then K.refuse('exists', 'checkpoint ' .. id .. ' exists') end
  K.add(ids, 'c', id)
end

-- Refuses a run that follows a turn which was taken back, packed at this place: the session has one as early, and not this one.
function K.check_follows(text, from)
  local id, turn = struct.unpack('>I2c0d', text, from)
  if redis.call('HEXISTS', K.key('c'), id) == 1 then return end
  local first = redis.call('ZRANGE', K.key('t'), 0, 0, 'WITHSCORES')
  if first[1] and tonumber(first[2]) <= turn then K.refuse('abandoned', 'the turn that the run follows was taken back') end
end

-- Makes a checkpoint the head. `meta` is what is known of it; `open` are questions of a run.
function K.append(id, session, meta, rest, run, open)
  local parent, turn = K.head()
  local member = K.turn_member(K.now, id)
  meta.id, meta.turn, meta.created, meta.session, meta.parent = id, K.int(turn + 1), K.int(K.now), session, parent
  local questions = {}
  for i, it in ipairs(open) do
    questions[i] = { K.record_now(it), it.rest or redis.call('HGET', run.key, 'q:' .. it.id), run.f, false }
  end
  redis.call('ZADD', K.key('t'), turn + 1, member)
  redis.call('HSET', K.key('c'), id, string.char(VERSION) .. cmsgpack.pack({ meta, rest, questions }))
  redis.call('HSET', KEYS[1], 't', '1')
  K.is_session_changed = true
  K.hint('set', K.locator('c', id), K.idle * 2, K.digest)
  local count = redis.call('ZCARD', K.key('t'))
  if count > 1 then K.hint('>', K.index('crowd'), count, K.session_member()) end
  if count == 2 then
    K.hint('>', K.index('aged'), K.turn_created(redis.call('ZRANGE', K.key('t'), 0, 0)[1]), K.session_member())
  end
end

-- The checkpoint of a run's turn, with the questions that are open and what a run that starts from it needs to know.
function K.append_turn(id, rest, run, snapshot)
  local open, meta = {}, { run = run.id }
  for _, it in ipairs(run.live) do
    if snapshot and it.status == K.PENDING and not K.is_due(it) then open[#open + 1] = it end
  end
  if #open > 0 then meta.snapshot, meta.definition, meta.answers = snapshot, run.w, K.int(run.answers) end
  K.append(id, run.session, meta, rest, run, open)
end

function K.read_turn(content)
  local version = string.byte(content)
  if version ~= VERSION then
    K.refuse('corrupt', 'a checkpoint has format ' .. version .. ', this code knows ' .. VERSION)
  end
  local parts = cmsgpack.unpack(string.sub(content, 2))
  return { meta = parts[1], rest = parts[2], open = parts[3] }
end

function K.checkpoint(id)
  local content = redis.call('HGET', K.key('c'), id)
  return content and K.read_turn(content) or nil
end

function K.remove_turn(member)
  local id = K.turn_id(member)
  redis.call('ZREM', K.key('t'), member)
  redis.call('HDEL', K.key('c'), id)
  K.hint('del', K.locator('c', id), 0)
end

-- A checkpoint as a flat list of what is known of it, what it was given with, and its questions.
function K.checkpoint_row(id)
  local it, known = K.checkpoint(id), {}
  if not it then return {} end
  for name, value in pairs(it.meta) do
    if name ~= 'definition' and name ~= 'answers' then K.add(known, name, value) end
  end
  return { known, it.rest, it.open }
end
