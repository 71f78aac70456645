-- Questions: publish, close, read.

local QUESTION = { 'run', 'ask', 'status', 'expires', 'm', 'opt', 'seq', 'token', 'pairs' }

local function question(id)
  local values = redis.call('HMGET', key('q', id), unpack(QUESTION))
  if not values[1] then return nil end
  local it = { id = id }
  for i, name in ipairs(QUESTION) do it[name] = values[i] or nil end
  it.expires = tonumber(it.expires)
  it.is_due = it.expires <= now
  it.is_pending = it.status == 'pending'
  return it
end

-- A question's name in indexes.
local function question_member(it)
  return string.sub(it.m, 1, 32) .. digest .. '.' .. it.id
end

-- Adds a question to the indexes, or takes it out.
local function index_question(it, op)
  hint(op, index('due'), it.expires, question_member(it))
  for pair in string.gmatch(it.pairs or '', '%x+') do hint(op, index('x:' .. pair), 0, question_member(it)) end
end

-- Publishes a question that was checked; `expires` is its deadline.
local function publish(run, new, expires)
  local member = stamp(next_seq()) .. new.id
  local fields = {
    'v', VERSION, 'id', new.id, 'token', new.token, 'run', run.id, 'ask', new.ask, 'workflow', new.workflow,
    'node', new.node, 'body', new.body or ARGV[new.blob], 'created', int(now), 'expires', int(expires),
    'status', 'pending', 'opt', new.opt, 'after', new.after, 'm', member, 'pairs', run.pairs,
  }
  local default = new.default_text or (new.default and ARGV[new.default])
  if default then
    fields[#fields + 1] = 'default'
    fields[#fields + 1] = default
  end
  redis.call('HSET', key('q', new.id), unpack(fields))
  redis.call('ZADD', key('o'), 0, member)
  redis.call('ZADD', key('o', run.id), 0, member)
  redis.call('HSET', key('r', run.id), 'k:' .. new.ask, new.id)
  redis.call('RPUSH', key('n', run.id), new.id)
  locate('q', new.id)
  index_question({ id = new.id, m = member, expires = expires, pairs = run.pairs }, '+')
end

-- Refuses questions that the run (a new one: nil) cannot publish once these keys were withdrawn.
local function check_publish(run, new, withdraw)
  local withdrawn, ids, asks = {}, {}, {}
  for _, ask in ipairs(withdraw) do withdrawn[ask] = true end
  for _, it in ipairs(new) do
    if ids[it.id] then refuse('exists', 'question ' .. it.id .. ' exists') end
    ids[it.id] = true
    check_new('q', it.id, 'question')
  end
  for _, it in ipairs(new) do
    local open = run and not withdrawn[it.ask] and redis.call('HEXISTS', key('r', run.id), 'k:' .. it.ask) == 1
    if open or asks[it.ask] then refuse('invalid', 'the run asks `' .. it.ask .. '` already') end
    asks[it.ask] = true
  end
end

-- Closes a pending question. One past its time has expired, whatever closes it: that is how it reads already.
local function close(it, status)
  if it.is_due then status = 'expired' end
  it.status = status
  it.is_pending = false
  redis.call('HSET', key('q', it.id), 'status', status)
  redis.call('ZREM', key('o'), it.m)
  redis.call('ZREM', key('o', it.run), it.m)
  redis.call('HDEL', key('r', it.run), 'k:' .. it.ask)
  index_question(it, '-')
end

-- Withdraws the run's open questions under these keys; others are ignored.
local function withdraw_all(run, asks)
  for _, ask in ipairs(asks) do
    local id = redis.call('HGET', key('r', run.id), 'k:' .. ask)
    if id then close(question(id), 'superseded') end
  end
end

-- Ids of the run's pending questions, oldest first.
local function pending_ids(run_id)
  local ids = {}
  for i, member in ipairs(redis.call('ZRANGE', key('o', run_id), 0, -1)) do ids[i] = string.sub(member, 33) end
  return ids
end

-- Questions of the run that are open and in time, oldest first, to be rendered.
local function open_questions(run_id)
  local open = {}
  for _, id in ipairs(pending_ids(run_id)) do
    if not question(id).is_due then open[#open + 1] = { '@', 'q', id } end
  end
  return open
end

-- A question as a flat list of names and texts.
local function question_row(id)
  local row = redis.call('HGETALL', key('q', id))
  local run_id, status_at, expires
  for i = 1, #row, 2 do
    if row[i] == 'run' then run_id = row[i + 1] end
    if row[i] == 'status' then status_at = i + 1 end
    if row[i] == 'expires' then expires = tonumber(row[i + 1]) end
  end
  if not run_id then return row end
  if row[status_at] == 'pending' and expires <= now then row[status_at] = 'expired' end
  row[#row + 1] = 'session'
  row[#row + 1] = session_id()
  row[#row + 1] = 'ctx'
  row[#row + 1] = redis.call('HGET', key('r', run_id), 'ctx') or '{}'
  return row
end
