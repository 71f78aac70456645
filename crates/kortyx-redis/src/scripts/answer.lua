-- Decides over answers to questions of one run, all or none, and says who drives then.
-- q: answers [{id, token or scope {session, context}, session, run, answer (payload), cancel, actor}], driver {ttl} (absent:
--    leave it), dry (only say what each would come to; the questions lie in several sessions)
-- Replies: 'accepted', receipts, 'granted' run | 'driven' | 'left' | 'ended'; 'duplicate', receipts, run;
--    'refused', [place, code, receipt]; dry: 'dry', [code], whether one would end its run
local function is_proved(answer, it)
  if answer.run and answer.run ~= it.run then return false end
  -- Equality of digests takes no longer for a token that is nearly right.
  if answer.token then return redis.sha1hex(answer.token) == redis.sha1hex(it.token) end
  return is_inside(it.run, answer.scope)
end

local function is_same(answer, it)
  return redis.call('HGET', key('q', it.id), 'answer') == ARGV[answer.answer]
end

local function verdict(answer, it, run)
  if answer.session and answer.session ~= session_id() then return 'wrong_session' end
  if it.status == 'pending' then
    if it.is_due then return 'expired' end
    return run.is_stopped and 'cancelled' or 'fresh'
  end
  if it.status == 'answered' then return is_same(answer, it) and 'repeated' or 'conflict' end
  if it.status == 'cancelled' and it.seq and is_same(answer, it) then return 'repeated' end
  return it.status
end

local function judge()
  local judged = { questions = {}, verdicts = {}, all_known = true, has_end = false, is_mixed = false }
  for i, answer in ipairs(q.answers) do
    local it = question(answer.id)
    if it and is_proved(answer, it) then
      judged.questions[i] = it
      judged.run = judged.run or load_run(it.run)
      local run = judged.run
      if run.id ~= it.run then
        judged.is_mixed = true
        run = load_run(it.run)
      end
      judged.has_end = judged.has_end or (answer.cancel == 1 and it.opt == '0')
      judged.verdicts[i] = verdict(answer, it, run)
    else
      judged.all_known = false
      judged.verdicts[i] = 'unknown'
    end
  end
  return judged
end

local function refusals(judged)
  local refused = {}
  for i, code in ipairs(judged.verdicts) do
    if code == 'conflict' then
      refused[#refused + 1] = { i - 1, code, { '@', 'p', judged.questions[i].id } }
    elseif code ~= 'fresh' and code ~= 'repeated' then
      refused[#refused + 1] = { i - 1, code, {} }
    end
  end
  return refused
end

-- Closes an open question with its answer; one that ends the run is not delivered to it.
local function take(run, it, answer)
  local ends = answer.cancel == 1 and it.opt == '0'
  give(run, it, ARGV[answer.answer], answer.actor, false)
  close(it, ends and 'cancelled' or 'answered')
  if not ends then redis.call('RPUSH', key('i', run.id), it.id) end
  return ends
end

local function drive(run, ends)
  if run.is_driven then
    if ends then run.is_stopped = true end
    attend(run)
    return { 'driven' }
  end
  if ends then
    end_run(run, 'cancelled', 'cancelled', nil, nil)
    return { 'ended' }
  end
  if q.driver then
    grant(run, q.driver)
    return { 'granted', claimed(run) }
  end
  leave(run)
  return { 'left' }
end

return once(function()
  local judged = judge()
  if q.dry then
    return { 'dry', judged.verdicts, judged.has_end and 1 or 0, refusals(judged) }
  end
  if judged.all_known and judged.is_mixed then refuse('invalid', 'the questions belong to different runs') end
  if judged.all_known and judged.has_end and #q.answers > 1 then
    refuse('invalid', 'a cancellation that ends the run cannot be given together with answers')
  end
  local refused = refusals(judged)
  if #refused > 0 then return { 'refused', refused } end
  local receipts, fresh, ends, run = {}, 0, false, judged.run
  for i, answer in ipairs(q.answers) do
    if judged.verdicts[i] == 'fresh' then
      fresh = fresh + 1
      has_written = true
      ends = take(run, judged.questions[i], answer) or ends
    end
    receipts[i] = { '@', 'p', answer.id }
  end
  if fresh == 0 then return { 'duplicate', receipts, { '@', 'r', run.id } } end
  return { 'accepted', receipts, drive(run, ends) }
end)
