-- Makes a run durable and grants its first lease.
-- ARGV[2]  packed: the run's id, how long the lease lasts (ms); the turn that it follows, if there is one: its checkpoint's id and
--          its place
-- ARGV[3…]  definition, snapshot, fixed part, chunks
-- Replies: fence, end of the lease
local run_id, ttl, follows_from = struct.unpack('>I2c0d', ARGV[2])

return K.once_for(run_id, function(run)
  if run then K.refuse('exists', 'run ' .. run_id .. ' exists') end
  if follows_from <= #ARGV[2] then K.check_follows(ARGV[2], follows_from) end
  K.check_elsewhere({ 'r', run_id })
  run = K.add_run(run_id, ARGV[5], ARGV[3], ARGV[4], 0)
  K.say(run, 6)
  K.grant(run, ttl)
  return { run.fence, run.till }
end)
