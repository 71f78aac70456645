-- Sessions.

K.born = nil
K.is_session_changed = false

-- The session's name in indexes; one that was removed and made anew has another.
function K.session_member()
  if not K.born then K.born = redis.call('HGET', KEYS[1], 'born') end
  return K.digest .. '.' .. (K.born or '0')
end

function K.session_id()
  return redis.call('HGET', KEYS[1], 'id') or ''
end

-- Makes the session if it is new, with so many more runs.
function K.make_session(id, more)
  K.is_session_changed = true
  local count = redis.call('HGET', KEYS[1], 'n')
  if count then
    if more > 0 then redis.call('HSET', KEYS[1], 'n', count + more) end
  else
    redis.call('HSET', KEYS[1], 'v', VERSION, 'id', id, 'born', K.int(K.now_us), 'n', more)
  end
end

-- A place in order: sorts by time, then by number. 32 characters, to the end of the calendar.
function K.stamp(number)
  return string.format('%018.0f.%012.0f.', K.now_us, number)
end

-- Ids of the session's runs that are not terminal, oldest first.
function K.active_runs()
  local ids = {}
  for i, member in ipairs(redis.call('ZRANGE', K.key('o'), '[r', '[s', 'BYLEX')) do ids[i] = string.sub(member, 34) end
  return ids
end

-- Notes that the session changed: one without a run that may go on has a time to live.
function K.settle_session()
  local is_idle, values = redis.call('EXISTS', K.key('o')) == 0, redis.call('HMGET', KEYS[1], 't', 'idle')
  local keys = values[1] and { KEYS[1], K.key('t'), K.key('c') } or { KEYS[1] }
  if is_idle then
    for _, name in ipairs(keys) do redis.call('PEXPIRE', name, K.idle) end
    if values[1] then
      redis.call('HSET', KEYS[1], 'idle', K.now)
      K.hint('>', K.index('idle'), K.now, K.session_member())
    end
  elseif values[2] or not values[1] then
    for _, name in ipairs(keys) do redis.call('PERSIST', name) end
    if values[2] then
      redis.call('HDEL', KEYS[1], 'idle')
      K.hint('-', K.index('idle'), 0, K.session_member())
    end
  end
end

-- Removes a session of which nothing is left.
function K.forget_unused_session()
  local values = redis.call('HMGET', KEYS[1], 'n', 't')
  if tonumber(values[1] or '0') <= 0 and not values[2] then redis.call('DEL', KEYS[1]) end
end
