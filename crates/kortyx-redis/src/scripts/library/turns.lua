-- Checkpoints: append, read, remove. Only for scripts that need them: to define a function takes its time with every call.

local function head()
  local last = redis.call('ZREVRANGE', key('t'), 0, 0, 'WITHSCORES')
  return last[1], tonumber(last[2] or '-1')
end

local function checkpoint_created(id)
  return tonumber(redis.call('HGET', key('cm'), id) or '0')
end

-- Corrects what indexes say of the session's checkpoints after some were removed.
local function settle_turns()
  local count = redis.call('ZCARD', key('t'))
  if count > 1 then
    local oldest = redis.call('ZRANGE', key('t'), 0, 0)[1]
    hint('+', index('crowd'), count, session_member())
    hint('+', index('aged'), checkpoint_created(oldest), session_member())
  else
    hint('-', index('crowd'), 0, session_member())
    hint('-', index('aged'), 0, session_member())
  end
end

-- Makes a checkpoint the head. `fields` is a flat list of names and texts; `open` holds questions as they are now.
local function append(id, fields, open)
  local parent, turn = head()
  local function put(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  put('id', id)
  put('turn', int(turn + 1))
  put('created', int(now))
  put('session', session_id())
  if parent then put('parent', parent) end
  redis.call('ZADD', key('t'), turn + 1, id)
  redis.call('HSET', key('cm'), id, int(now))
  redis.call('HSET', key('c'), id, cmsgpack.pack({ VERSION, fields, open }))
  locate('c', id, env.idle * 2)
  local count = redis.call('ZCARD', key('t'))
  if count > 1 then
    local oldest = redis.call('ZRANGE', key('t'), 0, 0)[1]
    hint('>', index('crowd'), count, session_member())
    hint('>', index('aged'), checkpoint_created(oldest), session_member())
  end
end

-- The fields of a checkpoint that the caller sends.
local function checkpoint_fields(new)
  local fields = { 'nodes', new.nodes, 'workflow', new.workflow, 'streams', new.streams, 'state', ARGV[new.state] }
  for _, name in ipairs({ 'label', 'version' }) do
    if new[name] then
      fields[#fields + 1] = name
      fields[#fields + 1] = new[name]
    end
  end
  return fields
end

-- A checkpoint's content: its fields by name, the flat list of them, and its questions.
local function checkpoint(id)
  local packed = redis.call('HGET', key('c'), id)
  if not packed then return nil end
  local content = cmsgpack.unpack(packed)
  if content[1] ~= VERSION then error({ refused = 'corrupt', message = 'a checkpoint of version ' .. content[1] }) end
  local named = {}
  for i = 1, #content[2], 2 do named[content[2][i]] = content[2][i + 1] end
  return { id = id, named = named, fields = content[2], open = content[3] }
end

local function remove_checkpoint(id)
  redis.call('ZREM', key('t'), id)
  redis.call('HDEL', key('cm'), id)
  redis.call('HDEL', key('c'), id)
  hint('del', locator('c', id), 0)
end

local function checkpoint_row(id)
  local it = checkpoint(id)
  return it and { it.fields, it.open } or {}
end
