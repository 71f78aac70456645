-- Extends the lease and reads what the driver has not seen.
-- q: run, fence, ttl, seen
-- Replies: end of the lease, answers, whether the run was asked to stop
return once(function()
  local run = leased()
  local till = later(q.ttl)
  -- Workers look at a run when its lease would have ended, and note then that it was extended.
  if till < run.till then hint('+', place(run), till, place_member(run)) end
  has_written = true
  redis.call('HSET', key('r', run.id), 'until', int(till))
  return { int(till), unseen(run, q.seen), run.is_stopped and 1 or 0 }
end)
