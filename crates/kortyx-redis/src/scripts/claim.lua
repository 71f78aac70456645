-- Grants a lease on a run that an index names, if it should be driven and is not.
-- q: run, index and member (where it was found), parked_before (of parked runs), recheck (ms), driver {ttl}
-- Replies: 'claimed' and the run; 'closed', since it was asked to stop; 'gone'
local q = cjson.decode(ARGV[2])

return K.once_for(q.run, function(run)
  if not run or run.old_index ~= q.index or run.old_member ~= q.member then
    K.hint('-', q.index, 0, q.member)
    return { 'gone' }
  end
  if K.is_driven(run) then
    K.hint('+', q.index, math.min(run.till, K.now + q.recheck), q.member)
    return { 'gone' }
  end
  if run.status == K.PARKED and run.updated >= q.parked_before then return { 'gone' } end
  if run.stop == 1 then
    K.end_run(run, K.CANCELLED_RUN, K.CANCELLED, nil, nil)
    return { 'closed' }
  end
  K.grant(run, q.driver.ttl)
  return { 'claimed', K.claimed(run) }
end)
