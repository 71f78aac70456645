-- Decides over answers to questions of one run, all or none, and says who drives then.
-- ARGV[2]  packed: 1 to drive, how long the lease lasts (ms), 1 to only say what each would come to (the questions lie in
--          several sessions), count; then of each: the question's id, the run that its locator names ('': none did), digest of
--          the token or scope {session, context} as JSON, and where given: session, run, 1 to cancel, actor (behind `=`)
-- ARGV[3…]  answers
-- Replies: 'accepted', receipts, 'granted' run | 'driven' | 'left' | 'ended'; 'duplicate', receipts, run;
--    'refused', [place, code, receipt]; dry: 'dry', [code], whether one would end its run, [place, code, receipt]
local drives, ttl, dry, count, from = struct.unpack('>BdBI4', ARGV[2])
local given = {}
for i = 1, count do
  local it = { answer = ARGV[2 + i] }
  it.id, it.home, it.digest, it.scope, it.session, it.run, it.cancel, it.actor, from =
    struct.unpack('>I2c0I2c0I2c0I4c0I2c0I2c0BI4c0', ARGV[2], from)
  given[i] = it
end

-- The run of a question that no locator knows: it is open in this session, or cannot be found.
local function home_of(id)
  local members = redis.call('ZRANGE', K.key('o'), '-', '(r', 'BYLEX')
  for _, member in ipairs(members) do
    local open_id, run_id = string.match(string.sub(member, 33), '^(.-)\31(.*)$')
    if open_id == id then return run_id end
  end
  return ''
end

local function is_proved(answer, run, it)
  if answer.run ~= '' and answer.run ~= run.id then return false end
  -- Equality of digests takes no longer for a token that is nearly right.
  if answer.digest ~= '' then return answer.digest == it.digest end
  return K.is_inside(run, cjson.decode(answer.scope))
end

local function is_same(answer, run, it)
  return redis.call('HGET', run.key, 'a:' .. it.id) == answer.answer
end

local function verdict(answer, run, it)
  if answer.session ~= '' and answer.session ~= run.session then return 'wrong_session' end
  if it.status == K.PENDING then
    if K.is_due(it) then return 'expired' end
    return run.stop == 1 and 'cancelled' or 'fresh'
  end
  if it.status == K.ANSWERED then return is_same(answer, run, it) and 'repeated' or 'conflict' end
  if it.status == K.CANCELLED and it.seq > 0 and is_same(answer, run, it) then return 'repeated' end
  return K.NAMES[it.status]
end

local function judge()
  local judged = { questions = {}, verdicts = {}, all_known = true, has_end = false, is_mixed = false }
  for i, answer in ipairs(given) do
    if answer.home == '' then answer.home = home_of(answer.id) end
    local run = answer.home ~= '' and K.load_run(answer.home)
    local it = run and K.question(run, answer.id)
    if it and is_proved(answer, run, it) then
      judged.questions[i] = it
      judged.run = judged.run or run
      judged.is_mixed = judged.is_mixed or judged.run ~= run
      judged.has_end = judged.has_end or (answer.cancel == 1 and it.opt == 0)
      judged.verdicts[i] = verdict(answer, run, it)
    else
      judged.all_known = false
      judged.verdicts[i] = 'unknown'
    end
  end
  return judged
end

local function refusals(judged)
  local list = {}
  for i, code in ipairs(judged.verdicts) do
    if code == 'conflict' then
      list[#list + 1] = { i - 1, code, { '\0p', given[i].home, given[i].id } }
    elseif code ~= 'fresh' and code ~= 'repeated' then
      list[#list + 1] = { i - 1, code, {} }
    end
  end
  return list
end

-- Closes an open question with its answer; one that ends the run is not delivered to it.
local function take(run, it, answer)
  local ends = answer.cancel == 1 and it.opt == 0
  K.give(run, it, answer.answer, answer.actor, 0)
  K.close(run, it, ends and K.CANCELLED or K.ANSWERED)
  return ends
end

local function drive(run, ends)
  if K.is_driven(run) then
    if ends then run.stop = 1 end
    K.attend(run)
    return { 'driven' }
  end
  if ends then
    K.end_run(run, K.CANCELLED_RUN, K.CANCELLED, nil, nil)
    return { 'ended' }
  end
  if drives == 1 then
    K.grant(run, ttl)
    return { 'granted', K.claimed(run) }
  end
  K.leave(run)
  return { 'left' }
end

return K.once_for(given[1].home, function()
  local judged = judge()
  if dry == 1 then return { 'dry', judged.verdicts, judged.has_end and 1 or 0, refusals(judged) } end
  if judged.all_known and judged.is_mixed then K.refuse('invalid', 'the questions belong to different runs') end
  if judged.all_known and judged.has_end and count > 1 then
    K.refuse('invalid', 'a cancellation that ends the run cannot be given together with answers')
  end
  local refused_ones = refusals(judged)
  if #refused_ones > 0 then return { 'refused', refused_ones } end
  local receipts, fresh, ends, run = {}, 0, false, judged.run
  for i, answer in ipairs(given) do
    if judged.verdicts[i] == 'fresh' then
      fresh = fresh + 1
      ends = take(run, judged.questions[i], answer) or ends
    end
    receipts[i] = { '\0p', run.id, answer.id }
  end
  if fresh == 0 then return { 'duplicate', receipts, { '\0r', run.id } } end
  return { 'accepted', receipts, drive(run, ends) }
end)
