-- Runs: load, check, change, end.

local RUN = { 'status', 'fence', 'until', 'answers', 'stop', 'epoch', 'stamp', 'pin', 'pairs', 'updated', 'reason',
  'wid', 'wver', 'wfp' }
local TERMINAL = { completed = true, failed = true, cancelled = true, expired = true }

-- Where workers look for the run: the name of an index and its place there.
local function place(run)
  if run.status == 'running' then return index('lease:' .. run.pin), run.till or 0 end
  if run.status == 'parked' then return index('parked:' .. run.pin), run.updated end
  if TERMINAL[run.status] then return index('ended'), run.updated end
  return nil
end

-- The run's name there; each turn has another, so that a late removal takes only what it means.
local function place_member(run)
  return run.stamp .. digest .. '.' .. int(run.epoch) .. '.' .. run.id
end

local function load_run(id)
  local values = redis.call('HMGET', key('r', id), unpack(RUN))
  if not values[1] then return nil end
  local run = { id = id }
  for i, name in ipairs(RUN) do run[name] = values[i] or nil end
  for _, name in ipairs({ 'fence', 'answers', 'epoch', 'updated' }) do run[name] = tonumber(run[name]) end
  run.till = tonumber(run['until'] or '')
  run.is_terminal = TERMINAL[run.status]
  run.is_driven = run.status == 'running' and run.till ~= nil and run.till > now
  run.is_stopped = run.stop == '1'
  run.had_reason = run.reason ~= nil
  run.was = { status = run.status, fence = run.fence, is_leased = run.till ~= nil, place = place(run), member = place_member(run) }
  return run
end

-- The run that the request's lease is good for.
local function leased()
  local run = load_run(q.run)
  if not run then refuse('lease', 'the run is not stored') end
  if run.is_terminal then refuse('lease', 'the run has ended') end
  if int(run.fence) ~= q.fence then refuse('lease', 'another lease was granted') end
  if run.status ~= 'running' or not run.till then refuse('lease', 'the lease was given up') end
  return run
end

-- Writes what changed of a run, here and in the indexes.
local function store_run(run)
  has_written = true
  local was = run.was
  if not was or was.status ~= run.status or was.fence ~= run.fence or was.is_leased ~= (run.till ~= nil) then
    if was and was.place then hint('-', was.place, 0, was.member) end
    if was then run.epoch = run.epoch + 1 end
    local name, score = place(run)
    if name then hint('+', name, score, place_member(run)) end
  end
  run.was = { status = run.status, fence = run.fence, is_leased = run.till ~= nil, place = place(run), member = place_member(run) }
  redis.call('HSET', key('r', run.id), 'status', run.status, 'fence', int(run.fence), 'until', run.till and int(run.till) or '',
    'answers', int(run.answers), 'stop', run.is_stopped and '1' or '0', 'epoch', int(run.epoch), 'pin', run.pin,
    'updated', int(run.updated), 'wid', run.wid, 'wver', run.wver, 'wfp', run.wfp)
  if run.reason then
    redis.call('HSET', key('r', run.id), 'reason', run.reason)
  elseif run.had_reason then
    redis.call('HDEL', key('r', run.id), 'reason')
  end
  run.had_reason = run.reason ~= nil
end

local function bind(run, workflow)
  run.wid, run.wver, run.wfp, run.pin = workflow.id, workflow.version, workflow.fingerprint, workflow.pin
end

-- Stores a run that was checked; it waits, and nobody drives it.
local function add_run(new, workflow, snapshot)
  make_session(new.session)
  local seq = next_seq()
  local run = { id = new.id, status = 'suspended', fence = 0, answers = new.answers or 0, epoch = 1, stamp = stamp(seq),
    pairs = new.pairs, updated = now }
  bind(run, workflow)
  redis.call('HSET', key('r', run.id), 'v', VERSION, 'id', run.id, 'ctx', new.context, 'pairs', run.pairs, 'stamp', run.stamp,
    'created', int(now), 'snap', snapshot)
  store_run(run)
  redis.call('HINCRBY', KEYS[1], 'runs', 1)
  redis.call('ZADD', key('a'), seq, run.id)
  locate('r', run.id)
  settle_session()
  return run
end

-- Grants the run's next lease.
local function grant(run, driver)
  if run.status == 'parked' then run.reason = nil end
  run.fence = run.fence + 1
  run.status = 'running'
  run.till = later(driver.ttl)
  run.updated = now
  store_run(run)
end

-- The run for its new driver, to be rendered.
local function claimed(run)
  return { '@', 'k', run.id, int(run.fence), int(run.till) }
end

-- Answers above this number, in order, to be rendered.
local function unseen(run, seen)
  local answers = {}
  for _, id in ipairs(redis.call('LRANGE', key('i', run.id), 0, -1)) do
    if tonumber(redis.call('HGET', key('q', id), 'seq')) > seen then answers[#answers + 1] = { '@', 'a', id } end
  end
  return answers
end

-- Ends a run: its questions are closed, its state is dropped, its keys get a time to live. Gives the open questions.
local function end_run(run, status, closing, reason, outcome)
  local open = {}
  for _, id in ipairs(pending_ids(run.id)) do
    local it = question(id)
    close(it, closing)
    open[#open + 1] = it
  end
  if reason or run.status == 'parked' then run.reason = reason end
  run.status, run.updated, run.till = status, now, nil
  store_run(run)
  redis.call('HDEL', key('r', run.id), 'snap')
  if outcome then redis.call('HSET', key('r', run.id), 'outcome', outcome) end
  redis.call('DEL', key('e', run.id), key('i', run.id))
  redis.call('ZREM', key('a'), run.id)
  redis.call('ZADD', key('d'), int(now), run.id)
  for _, id in ipairs(redis.call('LRANGE', key('n', run.id), 0, -1)) do
    redis.call('PEXPIRE', key('q', id), int(env.keep))
    hint('ttl', locator('q', id), env.keep)
  end
  redis.call('PEXPIRE', key('n', run.id), int(env.keep))
  redis.call('PEXPIRE', key('r', run.id), int(env.keep))
  hint('ttl', locator('r', run.id), env.keep)
  settle_session()
  return open
end

-- Removes a terminal run with its questions.
local function remove_run(run)
  has_written = true
  hint('-', run.was.place, 0, run.was.member)
  for _, id in ipairs(redis.call('LRANGE', key('n', run.id), 0, -1)) do
    redis.call('DEL', key('q', id))
    hint('del', locator('q', id), 0)
  end
  redis.call('DEL', key('n', run.id), key('r', run.id))
  hint('del', locator('r', run.id), 0)
  redis.call('ZREM', key('d'), run.id)
  redis.call('HINCRBY', KEYS[1], 'runs', -1)
  forget_unused_session()
end

-- Leaves a run that should go on to whoever claims it.
local function leave(run)
  if run.status == 'parked' then run.reason = nil end
  run.status, run.updated = 'running', now
  store_run(run)
  signal('work')
end

-- Notes the change of a driven run and tells its driver.
local function attend(run)
  run.updated = now
  store_run(run)
  signal('run ' .. run.id)
end

-- Whether the run lies inside a scope.
local function is_inside(run_id, scope)
  if scope.session and scope.session ~= session_id() then return false end
  local context = cjson.decode(redis.call('HGET', key('r', run_id), 'ctx') or '{}')
  for name, value in pairs(scope.context) do
    if context[name] ~= value then return false end
  end
  return true
end

-- Gives a question the run's next answer. Its status is the caller's.
local function give(run, it, answer, actor, by_default)
  run.answers = run.answers + 1
  it.seq = run.answers
  redis.call('HSET', key('q', it.id), 'answer', answer, 'seq', int(it.seq), 'at', int(now))
  if actor then redis.call('HSET', key('q', it.id), 'actor', actor) end
  if by_default then redis.call('HSET', key('q', it.id), 'bydef', '1') end
end
