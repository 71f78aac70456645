-- Removes checkpoints of a session, or the session.
-- q: what ('idle', 'crowd', 'aged'), index and member (where it was found), room, age (ms: of 'idle' and 'aged'), keep (of 'crowd')
-- Replies: how many checkpoints went, whether the session did (0, 1), whether more would (0, 1)
local function remove_oldest()
  remove_checkpoint(redis.call('ZRANGE', key('t'), 0, 0)[1])
end

-- Removes the oldest checkpoints while `may_go` says so.
local function remove_while(may_go)
  local removed = 0
  while may_go() do
    if removed == q.room then return removed, 1 end
    has_written = true
    remove_oldest()
    removed = removed + 1
  end
  if removed > 0 then settle_turns() end
  return removed, 0
end

local function prune_idle()
  local since = tonumber(redis.call('HGET', KEYS[1], 'idle') or '')
  if not since then hint('-', q.index, 0, q.member) end
  if not since or since > now - q.age then
    if since then hint('>', q.index, since, q.member) end
    return { 0, 0, 0 }
  end
  local removed, more = remove_while(function() return redis.call('EXISTS', key('t')) == 1 end)
  if more == 1 or removed == q.room then return { removed, 0, 1 } end
  has_written = true
  settle_turns()
  hint('-', q.index, 0, q.member)
  redis.call('HDEL', KEYS[1], 'idle')
  forget_unused_session()
  return { removed, 1, 0 }
end

return once(function()
  if session_member() ~= q.member then
    hint('-', q.index, 0, q.member)
    return { 0, 0, 0 }
  end
  if q.what == 'idle' then return prune_idle() end
  local removed, more = remove_while(function()
    local count = redis.call('ZCARD', key('t'))
    if q.what == 'crowd' then return count > math.max(q.keep, 1) end
    return count > 1 and checkpoint_created(redis.call('ZRANGE', key('t'), 0, 0)[1]) <= now - q.age
  end)
  if removed == 0 then settle_turns() end
  return { removed, 0, more }
end)
