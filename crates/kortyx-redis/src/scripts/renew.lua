-- Extends the lease and reads what the driver has not seen.
-- ARGV[2]  packed: the run's id, fence, how long the lease lasts from now (ms), answers seen
-- Replies: end of the lease, answers, whether the run was asked to stop
local run_id, fence, ttl, seen = struct.unpack('>I2c0ddd', ARGV[2])

return K.once_for(run_id, function(run)
  K.check_lease(run, fence)
  local till = K.later(ttl)
  -- Workers look at a run when its lease would have ended, and note then that it was extended.
  if till < run.till then K.hint('+', run.old_index, till, run.old_member) end
  run.till = till
  K.change(run)
  return { till, K.unseen(run, seen), run.stop }
end)
