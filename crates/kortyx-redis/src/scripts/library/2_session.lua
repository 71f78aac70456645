-- Sessions and their checkpoints.

local born = nil

-- The session's name in indexes; one that was removed and made anew has another.
local function session_member()
  if not born then born = redis.call('HGET', KEYS[1], 'born') end
  return digest .. '.' .. (born or '0')
end

local function session_id()
  return redis.call('HGET', KEYS[1], 'id') or ''
end

local function make_session(id)
  if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('HSET', KEYS[1], 'v', VERSION, 'id', id, 'born', int(now_us), 'seq', '0', 'runs', '0')
  end
end

local function next_seq()
  return redis.call('HINCRBY', KEYS[1], 'seq', 1)
end

-- A place in order: sorts by time, then by number. 30 characters.
local function stamp(seq)
  return string.format('%016.0f.%012.0f.', now_us, seq)
end

-- Notes that the session changed: one without a run that may go on has a time to live.
local function settle_session()
  local keys = { KEYS[1], key('t'), key('cm'), key('c'), key('d') }
  if redis.call('EXISTS', key('a')) == 0 then
    for _, name in ipairs(keys) do redis.call('PEXPIRE', name, int(env.idle)) end
    if redis.call('EXISTS', key('t')) == 1 then
      redis.call('HSET', KEYS[1], 'idle', int(now))
      hint('>', index('idle'), now, session_member())
    end
  elseif redis.call('HDEL', KEYS[1], 'idle') == 1 or redis.call('PTTL', KEYS[1]) >= 0 then
    for _, name in ipairs(keys) do redis.call('PERSIST', name) end
    hint('-', index('idle'), 0, session_member())
  end
end

-- Removes a session of which nothing is left.
local function forget_unused_session()
  local runs = tonumber(redis.call('HGET', KEYS[1], 'runs') or '0')
  if runs <= 0 and redis.call('EXISTS', key('t')) == 0 and redis.call('HEXISTS', KEYS[1], 'idle') == 0 then
    redis.call('DEL', KEYS[1], key('d'))
  end
end

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
