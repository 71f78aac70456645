-- Replies: what a transition said, with rows read where it names them.

local RUN_ROW = { 'v', 'id', 'ctx', 'wid', 'wver', 'wfp', 'status', 'created', 'updated', 'fence', 'until', 'answers', 'stop',
  'outcome', 'reason' }
local ANSWER_ROW = { 'v', 'id', 'ask', 'answer', 'seq', 'at', 'actor', 'bydef' }

-- A row of these fields, those that are there, as a flat list.
local function row_of(name, fields)
  local row = {}
  for i, value in ipairs(redis.call('HMGET', name, unpack(fields))) do
    if value then
      row[#row + 1] = fields[i]
      row[#row + 1] = value
    end
  end
  return row
end

local function run_row(id)
  local row = row_of(key('r', id), RUN_ROW)
  row[#row + 1] = 'session'
  row[#row + 1] = session_id()
  return row
end

local function answer_row(id)
  return row_of(key('q', id), ANSWER_ROW)
end

-- Everything that a driver needs: lease, run, snapshot, entries, answers.
local function claimed_row(id, fence, till)
  local answers = {}
  for i, question_id in ipairs(redis.call('LRANGE', key('i', id), 0, -1)) do answers[i] = answer_row(question_id) end
  local snapshot = redis.call('HGET', key('r', id), 'snap') or ''
  return { { fence, till }, run_row(id), snapshot, redis.call('LRANGE', key('e', id), 0, -1), answers }
end

local function receipt_row(id)
  return row_of(key('q', id), { 'id', 'run', 'seq', 'at', 'actor' })
end

-- Puts rows where a reply names them: { '@', kind, id, … }.
local function render(reply)
  if type(reply) ~= 'table' then return reply end
  if reply[1] ~= '@' then
    local rendered = {}
    for i, part in ipairs(reply) do rendered[i] = render(part) end
    return rendered
  end
  local kind, id = reply[2], reply[3]
  if kind == 'q' then return question_row(id) end
  if kind == 'r' then return run_row(id) end
  if kind == 'a' then return answer_row(id) end
  if kind == 'p' then return receipt_row(id) end
  -- Only scripts with the library's part on checkpoints name one.
  if kind == 'c' then return checkpoint_row(id) end
  return claimed_row(id, reply[4], reply[5])
end

-- Runs a transition once: a repeat under the same id gets the first reply. Looking for that comes before anything else: in a
-- slot that is moving to another server it fails, so that no transition runs where some of its keys are gone already.
local function once(transition)
  local memo = q.op and key('m', q.op)
  local kept = memo and redis.call('GET', memo)
  if kept then
    local said = cmsgpack.unpack(kept)
    return { 'done', render(said[1]), said[2] }
  end
  local is_done, said = pcall(transition)
  if not is_done then
    if type(said) == 'table' and said.refused then return { 'refused', said.refused, said.message } end
    -- What the server raised: a text or a table, by its version.
    if type(said) == 'table' and said.err then return said end
    return { err = tostring(said) }
  end
  if memo and has_written then redis.call('SET', memo, cmsgpack.pack({ said, hints }), 'PX', int(env.memo)) end
  return { 'done', render(said), hints }
end
