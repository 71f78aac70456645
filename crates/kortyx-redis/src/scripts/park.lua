-- Sets the run aside; the lease is given up.
-- ARGV[2]  packed: the run's id, fence, reason
-- Replies: nothing
local run_id, fence, reason = struct.unpack('>I2c0dI4c0', ARGV[2])

return K.once_for(run_id, function(run)
  K.check_lease(run, fence)
  K.set_reason(run, reason)
  run.status, run.till, run.updated = K.PARKED, -1, K.now
  K.change(run)
  return {}
end)
