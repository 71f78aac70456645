-- Ends a run. Or, when it has answers that the driver did not see, gives those.
-- ARGV[2]  packed: 1 for a new run, 2 for one that follows a turn, its id, fence, answers seen, status, 1 with a reason, the reason;
--          then the turn, as of open.lua
-- ARGV[3…]  definition, outcome, of a new run its fixed part; where there is a checkpoint or a chunk, the
--           checkpoint's id ('' for none) and what it is given with; chunks
-- Replies: 'done', or 'answered' and answers
local is_new, run_id, fence, seen, status, has_reason, reason, follows_from = struct.unpack('>BI2c0ddBBI4c0', ARGV[2])
local turn = ARGV[6] ~= '' and ARGV[6]

return K.once_for(run_id, function(run)
  local ids = {}
  if is_new > 0 then
    if run then K.refuse('exists', 'run ' .. run_id .. ' exists') end
    if is_new == 2 then K.check_follows(ARGV[2], follows_from) end
    K.add(ids, 'r', run_id)
  else
    K.check_lease(run, fence)
  end
  if turn then K.check_turn(turn, ids) end
  K.check_elsewhere(ids)
  if is_new > 0 then
    run = K.add_run(run_id, ARGV[5], ARGV[3], '', 0)
  else
    local answers = K.unseen(run, seen)
    if #answers > 0 then return { 'answered', answers } end
    K.bind(run, ARGV[3])
  end
  K.say(run, 8)
  local closing = status == K.CANCELLED_RUN and K.CANCELLED or K.SUPERSEDED
  K.end_run(run, status, closing, has_reason == 1 and reason or nil, ARGV[4])
  if turn then K.append_turn(turn, ARGV[7], run, nil) end
  return { 'done' }
end)
