-- Sessions.

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

-- A place in order: sorts by time, then by number. 32 characters, to the end of the calendar.
local function stamp(seq)
  return string.format('%018.0f.%012.0f.', now_us, seq)
end

-- Notes that the session changed: one without a run that may go on has a time to live.
local function settle_session()
  local has_turns = redis.call('EXISTS', key('t')) == 1
  local keys = has_turns and { KEYS[1], key('d'), key('t'), key('cm'), key('c') } or { KEYS[1], key('d') }
  if redis.call('EXISTS', key('a')) == 0 then
    for _, name in ipairs(keys) do redis.call('PEXPIRE', name, int(env.idle)) end
    if has_turns then
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
