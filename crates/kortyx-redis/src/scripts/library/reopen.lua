-- Questions of a checkpoint, opened again under new ids in a new run.

-- Gives a checkpoint's questions their new ids; or says why that cannot be.
function K.reopening(rows, reissue)
  local fresh, questions, count = {}, {}, 0
  for i, row in ipairs(rows) do
    questions[i] = K.read_question(row[1], 1)
    questions[i].rest, questions[i].fixed = row[2], row[3]
    if K.is_due(questions[i]) then return { 'expired', questions[i].id }, nil end
  end
  for _, it in ipairs(reissue) do
    if not fresh[it.from] then count = count + 1 end
    fresh[it.from] = it
  end
  if count ~= #questions or #reissue ~= #questions then return { 'mismatched' }, nil end
  for _, it in ipairs(questions) do
    local new = fresh[it.id]
    if not new then return { 'mismatched' }, nil end
    it.id, it.token, it.digest = new.id, new.token, ARGV[new.digest]
  end
  return nil, questions
end

function K.check_reopen(questions, run_id, ids)
  if #questions == 0 then return end
  if K.load_run(run_id) then K.refuse('exists', 'run ' .. run_id .. ' exists') end
  K.add(ids, 'r', run_id)
  K.check_publish(false, questions, {}, ids)
end

-- Opens the questions in a new run that waits for them, with the snapshot that goes with them.
function K.reopen(meta, questions, run_id, session)
  if #questions == 0 then return {} end
  local version, pairs_of, context = struct.unpack(FIXED, questions[1].fixed)
  local fixed = struct.pack(FIXED, version, #pairs_of, pairs_of, #context, context, #run_id, run_id, #session, session)
  local run = K.add_run(run_id, fixed, meta.definition, meta.snapshot, tonumber(meta.answers))
  for _, it in ipairs(questions) do K.publish(run, it, it.expires) end
  return K.open_questions(run)
end
