-- Gives up the lease: any worker may claim the run at once.
-- q: run, fence
-- Replies: nothing
return once(function()
  local run = leased()
  run.till, run.updated = nil, now
  store_run(run)
  signal('work')
  return {}
end)
