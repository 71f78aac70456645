-- Runs: load, check, change, end.
--
-- Fields of a run's hash:
--   h     a packed record of what changes, HEAD
--   f     what never changes, packed: digests of context pairs, context as JSON, the run's id, the session's id
--   w     its definition: a digest of 32 characters, and what it is the digest of
--   k     records of its questions that are open, or closed since its snapshot, one behind another
--   s     its snapshot as it came, which may be compressed;  e1 e2 …  entries recorded since
--   q:ID  the rest of a question;  a:ID  its answer;  d:ID  its record once it is in `k` no more
--   u  z  reason and outcome
--   y     what its response ended with, once that is complete
--   o     1: it said something
--   m     what the last transitions replied, by their ids
K.RUNNING, K.SUSPENDED, K.PARKED, K.COMPLETED, K.CANCELLED_RUN, K.EXPIRED_RUN = RUNNING, SUSPENDED, 3, 4, 6, 7
K.STATUS = { 'running', 'suspended', 'parked', 'completed', 'failed', 'cancelled', 'expired' }
-- How many bytes of replies are kept at most.
K.MOST_REPLIES = 4096

-- Runs that this transition loaded or made, by their ids.
K.runs = {}

-- Where workers look for the run: the name of an index and its place there.
function K.place(run)
  if run.status == K.RUNNING then return K.index('lease:' .. string.sub(run.w, 1, 32)), math.max(run.till, 0) end
  if run.status == K.PARKED then return K.index('parked:' .. string.sub(run.w, 1, 32)), run.updated end
  if run.status >= K.COMPLETED then return K.index('ended'), run.updated end
  return nil
end

-- The run's name there; each turn has another, so that a late removal takes only what it means.
function K.place_member(run)
  return run.stamp .. K.digest .. '.' .. K.int(run.epoch) .. '.' .. run.id
end

function K.note_place(run)
  run.old_status, run.old_fence, run.old_leased = run.status, run.fence, run.till >= 0
  run.old_index = K.place(run)
  if run.old_index then run.old_member = K.place_member(run) end
end

function K.read_fixed(run)
  local version
  version, run.pairs, run.context, run.id, run.session = struct.unpack(FIXED, run.f)
end

function K.load_run(id)
  if K.runs[id] ~= nil then return K.runs[id] end
  local name = K.key('r', id)
  local values = redis.call('HMGET', name, 'h', 'k', 'f', 'w', 'm', 'u', 'o')
  if not values[1] then
    K.runs[id] = false
    return false
  end
  local run, version = { key = name, h = values[1], k = values[2] or '', f = values[3], w = values[4], m = values[5] or '',
    reason = values[6] or nil, has_said = values[7] }, nil
  version = string.byte(values[1])
  if version ~= VERSION then K.refuse('corrupt', 'a run has format ' .. version .. ', this code knows ' .. VERSION) end
  version, run.status, run.stop, run.fence, run.till, run.answers, run.epoch, run.created, run.updated, run.entries,
    run.moved, run.stamp = struct.unpack(HEAD, values[1])
  K.read_fixed(run)
  local live, from, count = {}, 1, 0
  while from <= #run.k do
    count = count + 1
    live[count], from = K.read_question(run.k, from)
  end
  run.live, run.fields, run.gone = live, {}, {}
  K.note_place(run)
  K.runs[id] = run
  return run
end

function K.is_terminal(run)
  return run.status >= K.COMPLETED
end

function K.is_driven(run)
  return run.status == K.RUNNING and run.till > K.now
end

-- The run that the request's lease is good for.
function K.check_lease(run, fence)
  if not run then K.refuse('lease', 'the run is not stored') end
  if K.is_terminal(run) then K.refuse('lease', 'the run has ended') end
  if run.fence ~= fence then K.refuse('lease', 'another lease was granted') end
  if run.status ~= K.RUNNING or run.till < 0 then K.refuse('lease', 'the lease was given up') end
end

function K.pack_head(run)
  run.h = struct.pack(HEAD, VERSION, run.status, run.stop, run.fence, run.till, run.answers, run.epoch, run.created, run.updated,
    run.entries, run.moved, run.stamp)
  return run.h
end

-- What was said before, newest first. Once it is long, without what is older than any repeat.
function K.shortened(said)
  if #said <= KEPT_REPLIES then return said end
  local behind = 1
  while behind <= #said do
    local at, op_length = struct.unpack('>dI2', said, behind)
    local next_one = behind + 14 + op_length + struct.unpack('>I4', said, behind + 10 + op_length)
    if at < K.now - K.MEMO or next_one > K.MOST_REPLIES then return string.sub(said, 1, behind - 1) end
    behind = next_one
  end
  return said
end

-- Writes what changed of a run, here and in the indexes; `said` is kept for a repeat of this transition.
function K.commit(run, said)
  local fields = run.fields
  if run.is_new or run.old_status ~= run.status or run.old_fence ~= run.fence or run.old_leased ~= (run.till >= 0) then
    if not run.is_new then run.epoch = run.epoch + 1 end
    local name, score = K.place(run)
    if run.old_index then K.hint('-', run.old_index, 0, run.old_member) end
    if name then K.hint('+', name, score, K.place_member(run)) end
  end
  if run.is_asked then
    local records = {}
    for i, it in ipairs(run.live) do records[i] = K.pack_question(it) end
    K.add(fields, 'k', table.concat(records))
  end
  K.add(fields, 'h', K.pack_head(run))
  if said then
    local body = cmsgpack.pack({ said, K.left })
    K.add(fields, 'm', struct.pack('>dI2c0I4c0', K.now, #K.op, K.op, #body, body) .. K.shortened(run.m))
  end
  K.with_all('HSET', run.key, fields)
  if #run.gone > 0 then K.with_all('HDEL', run.key, run.gone) end
  if run.is_ended then
    redis.call('PEXPIRE', run.key, K.keep)
    if run.has_said then redis.call('PEXPIRE', K.key('out', run.id), K.keep) end
  end
end

function K.change(run)
  run.is_changed = true
end

function K.bind(run, definition)
  if run.w ~= definition then
    run.w = definition
    K.add(run.fields, 'w', definition)
  end
end

function K.set_reason(run, reason)
  if reason then
    K.add(run.fields, 'u', reason)
  elseif run.reason then
    K.add(run.gone, 'u')
  end
  run.reason = reason
end

-- Adds a run that was checked; it waits, and nobody drives it.
function K.add_run(id, fixed, definition, snapshot, answers)
  local run = { key = K.key('r', id), status = K.SUSPENDED, stop = 0, fence = 0, till = -1, answers = answers, epoch = 1,
    created = K.now, updated = K.now, entries = 0, moved = 0, stamp = K.stamp(0), m = '', f = fixed, w = definition, live = {},
    fields = { 'f', fixed, 'w', definition, 's', snapshot }, gone = {}, is_new = true, is_changed = true, old_fence = 0 }
  K.read_fixed(run)
  K.make_session(run.session, 1)
  K.runs[id] = run
  K.add(K.opened, 0, 'r' .. run.stamp .. id)
  K.locate('r', id, K.digest)
  return run
end

-- Appends what the run says, the arguments from this one on, if there are any. Nothing may refuse the transition any more.
function K.say(run, from)
  if not ARGV[from] then return end
  local name = K.key('out', run.id)
  if not run.has_said then
    -- A full server refuses the first. Where another run with this id was, the list may have outlived it.
    redis.call('HSET', run.key, 'o', '1')
    redis.call('DEL', name)
    run.has_said = '1'
  end
  for at = from, #ARGV, K.MANY do
    redis.call('RPUSH', name, unpack(ARGV, at, math.min(at + K.MANY - 1, #ARGV)))
  end
end

-- Grants the run's next lease.
function K.grant(run, ttl)
  if run.status == K.PARKED then K.set_reason(run, nil) end
  run.fence = run.fence + 1
  run.status = K.RUNNING
  run.till = K.later(ttl)
  run.updated = K.now
  K.change(run)
end

-- The run for its new driver, to be rendered.
function K.claimed(run)
  return { '\0k', run.id, run.fence, run.till }
end

function K.by_number(a, b)
  return a.seq < b.seq
end

-- The run's answers above this number that its snapshot does not hold, in order.
function K.answers_above(run, seen)
  local answers = {}
  for _, it in ipairs(run.live) do
    if K.is_answer(it) and it.seq > seen then answers[#answers + 1] = it end
  end
  if #answers > 1 then table.sort(answers, K.by_number) end
  return answers
end

-- The same, to be rendered.
function K.unseen(run, seen)
  local answers = K.answers_above(run, seen)
  for i, it in ipairs(answers) do answers[i] = { '\0a', run.id, it.id } end
  return answers
end

-- A question of the run, wherever its record is.
function K.question(run, id)
  for _, it in ipairs(run.live) do
    if it.id == id then return it end
  end
  local packed = run.moved > 0 and redis.call('HGET', run.key, 'd:' .. id)
  return packed and K.read_question(packed, 1) or nil
end

function K.change_question(run, it)
  it.packed = nil
  run.is_asked = true
  K.change(run)
end

-- Closes a pending question. One past its time has expired, whatever closes it: that is how it reads already.
function K.close(run, it, status)
  if K.is_due(it) then status = K.EXPIRED end
  it.status = status
  K.change_question(run, it)
  K.add(K.closed, K.open_member(run, it))
  K.index_question(run, it, '-')
end

-- The run's pending questions, oldest first.
function K.pending(run)
  local list = {}
  for _, it in ipairs(run.live) do
    if it.status == K.PENDING then list[#list + 1] = it end
  end
  return list
end

-- Questions of the run that are open and in time, oldest first, to be rendered.
function K.open_questions(run)
  local open = {}
  for _, it in ipairs(run.live) do
    if it.status == K.PENDING and not K.is_due(it) then open[#open + 1] = { '\0q', run.id, it.id } end
  end
  return open
end

-- Ids of all questions that the run ever asked.
function K.question_ids(run)
  local ids = {}
  for _, it in ipairs(run.live) do ids[#ids + 1] = it.id end
  if run.moved > 0 then
    for _, field in ipairs(redis.call('HKEYS', run.key)) do
      if string.sub(field, 1, 2) == 'd:' then ids[#ids + 1] = string.sub(field, 3) end
    end
  end
  return ids
end

-- Forgets the entries: a snapshot holds them, or nobody needs them any more.
function K.drop_entries(run)
  for i = 1, run.entries do K.add(run.gone, 'e' .. i) end
  run.entries = 0
end

-- Ends a run: its questions are closed, its state is dropped, its keys get a time to live. Gives the open questions.
function K.end_run(run, status, closing, reason, outcome)
  local open = K.pending(run)
  for _, it in ipairs(open) do K.close(run, it, closing) end
  if reason or run.status == K.PARKED then K.set_reason(run, reason) end
  run.status, run.updated, run.till, run.is_ended = status, K.now, -1, true
  K.change(run)
  K.add(run.fields, 's', '')
  if outcome then K.add(run.fields, 'z', outcome) end
  K.drop_entries(run)
  K.add(K.closed, 'r' .. run.stamp .. run.id)
  K.is_session_changed = true
  K.add(K.fading, K.locator('r', run.id))
  for _, id in ipairs(K.question_ids(run)) do K.add(K.fading, K.locator('q', id)) end
  return open
end

-- Removes a terminal run with its questions.
function K.remove_run(run)
  K.hint('-', run.old_index, 0, run.old_member)
  for _, id in ipairs(K.question_ids(run)) do K.hint('del', K.locator('q', id), 0) end
  K.hint('del', K.locator('r', run.id), 0)
  redis.call('DEL', run.key)
  if run.has_said then redis.call('DEL', K.key('out', run.id)) end
  redis.call('HINCRBY', KEYS[1], 'n', -1)
  K.forget_unused_session()
end

-- Leaves a run that should go on to whoever claims it.
function K.leave(run)
  if run.status == K.PARKED then K.set_reason(run, nil) end
  run.status, run.updated = K.RUNNING, K.now
  K.change(run)
  K.wake()
end

-- Notes the change of a driven run and tells its driver.
function K.attend(run)
  run.updated = K.now
  K.change(run)
  K.signal('run ' .. run.id)
end

-- Whether the run lies inside a scope.
function K.is_inside(run, scope)
  if scope.session and scope.session ~= run.session then return false end
  local context = cjson.decode(run.context)
  for name, value in pairs(scope.context) do
    if context[name] ~= value then return false end
  end
  return true
end

-- Gives a question the run's next answer. Its status is the caller's.
function K.give(run, it, answer, actor, by_default)
  run.answers = run.answers + 1
  it.seq, it.at, it.actor, it.by_default = run.answers, K.now, actor, by_default
  K.change_question(run, it)
  K.add(run.fields, 'a:' .. it.id, answer)
end
