-- Removes checkpoints of a session, or the session.
-- q: what ('idle', 'crowd', 'aged'), index and member (where it was found), room, age (ms: of 'idle' and 'aged'), keep (of 'crowd')
-- Replies: how many checkpoints went, whether the session did (0, 1), whether more would (0, 1)
local q = cjson.decode(ARGV[2])

local function oldest()
  return redis.call('ZRANGE', K.key('t'), 0, 0)[1]
end

-- Removes the oldest checkpoints while `may_go` says so.
local function remove_while(may_go)
  local removed = 0
  while may_go() do
    if removed == q.room then return removed, 1 end
    K.remove_turn(oldest())
    removed = removed + 1
  end
  if removed > 0 then K.settle_turns() end
  return removed, 0
end

local function prune_idle()
  local since = tonumber(redis.call('HGET', KEYS[1], 'idle') or '')
  if not since then K.hint('-', q.index, 0, q.member) end
  if not since or since > K.now - q.age then
    if since then K.hint('>', q.index, since, q.member) end
    return { 0, 0, 0 }
  end
  local removed, more = remove_while(function() return redis.call('EXISTS', K.key('t')) == 1 end)
  if more == 1 or removed == q.room then return { removed, 0, 1 }, true end
  K.settle_turns()
  K.hint('-', q.index, 0, q.member)
  K.forget_unused_session()
  return { removed, 1, 0 }, true
end

return K.once(function()
  if K.session_member() ~= q.member then
    K.hint('-', q.index, 0, q.member)
    return { 0, 0, 0 }
  end
  if q.what == 'idle' then return prune_idle() end
  local removed, more = remove_while(function()
    local count = redis.call('ZCARD', K.key('t'))
    if q.what == 'crowd' then return count > math.max(q.keep, 1) end
    return count > 1 and K.turn_created(oldest()) <= K.now - q.age
  end)
  if removed == 0 then K.settle_turns() end
  return { removed, 0, more }, true
end)
