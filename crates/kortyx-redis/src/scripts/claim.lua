-- Grants a lease on a run that an index names, if it should be driven and is not.
-- q: run, index and member (where it was found), parked_before (of parked runs), recheck (ms), driver {ttl}
-- Replies: 'claimed' and the run; 'closed', since it was asked to stop; 'gone'
return once(function()
  local run = load_run(q.run)
  if not run or place(run) ~= q.index or place_member(run) ~= q.member then
    hint('-', q.index, 0, q.member)
    return { 'gone' }
  end
  if run.is_driven then
    hint('+', q.index, math.min(run.till, now + q.recheck), q.member)
    return { 'gone' }
  end
  if run.status == 'parked' and run.updated >= q.parked_before then return { 'gone' } end
  if run.is_stopped then
    end_run(run, 'cancelled', 'cancelled', nil, nil)
    return { 'closed' }
  end
  grant(run, q.driver)
  return { 'claimed', claimed(run) }
end)
