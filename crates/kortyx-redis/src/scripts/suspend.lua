-- Ends a driver's turn: the run waits. Or, when it has answers that the driver did not see, gives those.
-- ARGV[2]  packed: 1 for a new run, 2 for one that follows a turn, its id, fence, answers seen; then questions and keys to withdraw,
--          see publish.lua; then the turn, as of open.lua
-- ARGV[3…]  definition, snapshot, of a new run its fixed part, the rest of each question; where there is a checkpoint or a
--           chunk, the checkpoint's id ('' for none) and what it is given with; chunks
-- Replies: 'saved' and the open questions, 'answered' and answers, 'cancelled', or 'expired'
local is_new, run_id, fence, seen, asks_from = struct.unpack('>BI2c0dd', ARGV[2])
local new, withdraw, follows_from = K.read_asks(ARGV[2], asks_from, 6)
local turn, given_with = ARGV[6 + #new], ARGV[7 + #new]
if turn == '' then turn = nil end

local function is_waiting(run)
  for _, it in ipairs(run.live) do
    if it.status == K.PENDING and (it.has_default == 1 or not K.is_due(it)) then return true end
  end
  return false
end

local function check(run)
  local ids = {}
  if is_new > 0 then
    if run then K.refuse('exists', 'run ' .. run_id .. ' exists') end
    if is_new == 2 then K.check_follows(ARGV[2], follows_from) end
    K.add(ids, 'r', run_id)
  else
    K.check_lease(run, fence)
  end
  if turn then K.check_turn(turn, ids) end
  K.check_publish(run, new, withdraw, ids)
  if is_new > 0 and #new == 0 then K.refuse('invalid', 'a new run that asks nothing cannot wait') end
end

-- The snapshot holds what was recorded, and every question that is closed.
local function save(run)
  run.status, run.till, run.updated = K.SUSPENDED, -1, K.now
  K.add(run.fields, 's', ARGV[4])
  K.drop_entries(run)
  local open = {}
  for _, it in ipairs(run.live) do
    if it.status == K.PENDING then
      open[#open + 1] = it
    else
      K.add(run.fields, 'd:' .. it.id, K.pack_question(it))
      run.moved = run.moved + 1
    end
  end
  run.live, run.is_asked, run.is_changed = open, true, true
end

return K.once_for(run_id, function(run)
  check(run)
  if is_new > 0 then
    run = K.add_run(run_id, ARGV[5], ARGV[3], ARGV[4], 0)
  else
    if run.stop == 1 then
      K.say(run, 8 + #new)
      K.end_run(run, K.CANCELLED_RUN, K.CANCELLED, nil, nil)
      return { 'cancelled' }
    end
    local answers = K.unseen(run, seen)
    if #answers > 0 then return { 'answered', answers } end
    K.bind(run, ARGV[3])
    K.withdraw_all(run, withdraw)
  end
  K.say(run, 8 + #new)
  for _, it in ipairs(new) do K.publish(run, it, K.later(it.ttl)) end
  if not is_waiting(run) then
    K.end_run(run, K.EXPIRED_RUN, K.EXPIRED, nil, nil)
    return { 'expired' }
  end
  if is_new == 0 then save(run) end
  if turn then K.append_turn(turn, given_with, run, ARGV[4]) end
  return { 'saved', K.open_questions(run) }
end)
