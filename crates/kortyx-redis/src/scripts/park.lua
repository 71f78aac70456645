-- Sets the run aside; the lease is given up.
-- q: run, fence, reason
-- Replies: nothing
return once(function()
  local run = leased()
  run.status, run.reason, run.till, run.updated = 'parked', q.reason, nil, now
  store_run(run)
  return {}
end)
