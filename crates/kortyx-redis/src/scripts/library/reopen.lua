-- Questions of a checkpoint, opened again under new ids in a new run.

local function by_name(row)
  local named = {}
  for i = 1, #row, 2 do named[row[i]] = row[i + 1] end
  return named
end

-- Gives a checkpoint's questions their new ids; or says why that cannot be.
local function reopening(rows, reissue)
  local fresh, questions, count = {}, {}, 0
  for i, row in ipairs(rows) do
    questions[i] = by_name(row)
    if tonumber(questions[i].expires) <= now then return { 'expired', questions[i].id }, nil end
  end
  for _, it in ipairs(reissue) do
    if not fresh[it.from] then count = count + 1 end
    fresh[it.from] = it
  end
  if count ~= #questions or #reissue ~= #questions then return { 'mismatched' }, nil end
  for _, it in ipairs(questions) do
    local new = fresh[it.id]
    if not new then return { 'mismatched' }, nil end
    it.default_text, it.id, it.token = it.default, new.id, new.token
  end
  return nil, questions
end

local function check_reopen(questions, run_id)
  if #questions == 0 then return end
  check_new('r', run_id, 'run')
  local named = {}
  for _, it in ipairs(questions) do
    if named[it.id] then refuse('exists', 'question ' .. it.id .. ' exists') end
    named[it.id] = true
    check_new('q', it.id, 'question')
  end
end

-- Opens the questions in a new run that waits for them, with the snapshot that goes with them.
local function reopen(basis, questions, run_id, session)
  if #questions == 0 then return {} end
  local new = { id = run_id, session = session, context = questions[1].ctx, pairs = basis.pairs, answers = tonumber(basis.answers) }
  local workflow = { id = basis.wid, version = basis.wver, fingerprint = basis.wfp, pin = basis.pin }
  local run = add_run(new, workflow, basis.snapshot)
  for _, it in ipairs(questions) do publish(run, it, tonumber(it.expires)) end
  return open_questions(run_id)
end
