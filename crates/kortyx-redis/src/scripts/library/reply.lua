-- Replies: what a transition said, with rows read where it names them.

function K.run_row(run)
  local outcome = K.is_terminal(run) and redis.call('HGET', run.key, 'z')
  return { run.h, run.f, run.w, run.reason or false, outcome }
end

function K.question_row(run, it)
  local rest, answer = it.rest, false
  if not rest then
    local values = redis.call('HMGET', run.key, 'q:' .. it.id, 'a:' .. it.id)
    rest, answer = values[1], values[2]
  end
  return { K.record_now(it), rest, run.f, answer }
end

-- Everything that a driver needs: lease, run, snapshot, entries, answers.
function K.claimed_row(run, fence, till)
  local fields, entries, answers = { 's' }, {}, K.answers_above(run, 0)
  for _, it in ipairs(answers) do fields[#fields + 1] = 'a:' .. it.id end
  for i = 1, run.entries do fields[#fields + 1] = 'e' .. i end
  local values = {}
  for from = 1, #fields, K.MANY do
    for i, value in ipairs(redis.call('HMGET', run.key, unpack(fields, from, math.min(from + K.MANY - 1, #fields)))) do
      values[from + i - 1] = value
    end
  end
  local given = #answers
  for i, it in ipairs(answers) do answers[i] = { K.pack_question(it), values[i + 1] } end
  for i = 1, run.entries do entries[i] = values[given + i + 1] end
  return { fence, till, K.run_row(run), values[1] or '', entries, answers }
end

-- Rows by the letter that names them in a reply: { '\0LETTER', run, … }.
function K.row_r(named)
  local row = K.run_row(K.load_run(named[2]))
  -- What its response ended with is for readers of the run alone.
  if named[3] then row[6] = redis.call('HGET', K.runs[named[2]].key, 'y') end
  return row
end

function K.row_k(named)
  return K.claimed_row(K.load_run(named[2]), named[3], named[4])
end

function K.row_q(named)
  local run = K.load_run(named[2])
  return K.question_row(run, K.question(run, named[3]))
end

function K.row_p(named)
  local run = K.load_run(named[2])
  return { K.pack_question(K.question(run, named[3])), run.f }
end

function K.row_a(named)
  local run = K.load_run(named[2])
  return { K.pack_question(K.question(run, named[3])), redis.call('HGET', run.key, 'a:' .. named[3]) }
end

function K.row_c(named)
  return K.checkpoint_row(named[2])
end

-- What names a checkpoint: the only one without a run.
K.OF_CHECKPOINT = '\0' .. 'c'

-- Puts rows where a reply names them; no text that is stored starts like such a name.
function K.render(reply)
  if type(reply) ~= 'table' then return reply end
  local first = reply[1]
  if type(first) ~= 'string' or string.byte(first) ~= 0 then
    local rendered = {}
    for i = 1, #reply do rendered[i] = K.render(reply[i]) end
    return rendered
  end
  if first ~= K.OF_CHECKPOINT and not K.load_run(reply[2]) then return {} end
  return K['row_' .. string.sub(first, 2)](reply)
end

-- Ends a transition that was refused, or that failed.
function K.refused(said)
  if type(said) == 'table' and said.refused then return { 'refused', said.refused, said.message } end
  -- What the server raised: a text or a table, by its version.
  if type(said) == 'table' and said.err then return said end
  return { err = tostring(said) }
end

-- What a transition said and left to do, as a run keeps it; of an ordinary case its letter and what it says of the run.
function K.kept(text, run_id)
  local letter = string.sub(text, 1, 1)
  if letter == 'S' then return { { 'saved', { { '\0q', run_id, string.sub(text, 2) } } }, {} } end
  if letter == 'D' then return { { 'done' }, {} } end
  if letter ~= 'A' then return cmsgpack.unpack(text) end
  local fence, till, from = struct.unpack('>dd', text, 2)
  local claimed = { '\0k', run_id, fence, till }
  return { { 'accepted', { { '\0p', run_id, string.sub(text, from) } }, { 'granted', claimed } }, {} }
end

-- Runs a transition of one run once: a repeat under the same id gets the first reply.
function K.once_for(run_id, transition)
  local is_done, said = pcall(K.load_run, run_id)
  if not is_done then return K.refused(said) end
  local run = said
  local at = run and K.op ~= '' and string.find(run.m, K.op, 1, true)
  if at then
    local kept = K.kept((struct.unpack('>I4c0', run.m, at + #K.op)), run_id)
    return { 'done', K.render(kept[1]), kept[2] }
  end
  is_done, said = pcall(transition, run)
  if not is_done then return K.refused(said) end
  run = K.runs[run_id]
  if run and run.is_changed then
    K.fade()
    K.commit(run, said)
    K.settle_keys()
    if K.is_session_changed then K.settle_session() end
  end
  return { 'done', K.render(said), K.hints_left() }
end

-- The same for a transition of any number of runs.
function K.once(transition)
  local memo = K.op ~= '' and K.key('m', K.op)
  local kept = memo and redis.call('GET', memo)
  if kept then
    local said = cmsgpack.unpack(kept)
    return { 'done', K.render(said[1]), said[2] }
  end
  local is_done, said, has_written = pcall(transition)
  if not is_done then return K.refused(said) end
  K.fade()
  for _, run in pairs(K.runs) do
    if run and run.is_changed then
      has_written = true
      K.commit(run, nil)
    end
  end
  K.settle_keys()
  if K.is_session_changed then K.settle_session() end
  if memo and (has_written or #K.hints + #K.left > 0) then
    redis.call('SET', memo, cmsgpack.pack({ said, K.left }), 'PX', K.MEMO)
  end
  return { 'done', K.render(said), K.hints_left() }
end
