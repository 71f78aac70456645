-- Gives up the lease: any worker may claim the run at once.
-- ARGV[2]  packed: the run's id, fence
-- Replies: nothing
local run_id, fence = struct.unpack('>I2c0d', ARGV[2])

return K.once_for(run_id, function(run)
  K.check_lease(run, fence)
  run.till, run.updated = -1, K.now
  K.change(run)
  K.wake()
  return {}
end)
