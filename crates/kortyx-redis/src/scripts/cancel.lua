-- Ends runs that nobody drives, or asks their drivers to stop.
-- q: run (absent: every run of the session that is not terminal), scope {session, context} (absent: any), reason
-- Replies: [run, 'cancelled' | 'requested' | 'ended', status]
return once(function()
  local ids = q.run and { q.run } or redis.call('ZRANGE', key('a'), 0, -1)
  local outcomes = {}
  for _, id in ipairs(ids) do
    local run = load_run(id)
    if run and (not q.scope or is_inside(id, q.scope)) then
      local outcome = 'ended'
      if run.is_driven then
        outcome = 'requested'
        run.is_stopped = true
        run.reason = q.reason or run.reason
        attend(run)
      elseif not run.is_terminal then
        outcome = 'cancelled'
        end_run(run, 'cancelled', 'cancelled', q.reason, nil)
      end
      outcomes[#outcomes + 1] = { id, outcome, run.status }
    end
  end
  return outcomes
end)
