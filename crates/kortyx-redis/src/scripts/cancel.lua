-- Ends runs that nobody drives, or asks their drivers to stop.
-- q: run (absent: every run of the session that is not terminal), scope {session, context} (absent: any), reason
-- Replies: ['cancelled' | 'requested' | 'ended', run, status]
local q = cjson.decode(ARGV[2])

return K.once(function()
  local outcomes = {}
  for _, id in ipairs(q.run and { q.run } or K.active_runs()) do
    local run = K.load_run(id)
    if run and (not q.scope or K.is_inside(run, q.scope)) then
      local outcome = 'ended'
      if K.is_driven(run) then
        outcome = 'requested'
        run.stop = 1
        if q.reason then K.set_reason(run, q.reason) end
        K.attend(run)
      elseif not K.is_terminal(run) then
        outcome = 'cancelled'
        K.end_run(run, K.CANCELLED_RUN, K.CANCELLED, q.reason, nil)
      end
      outcomes[#outcomes + 1] = { outcome, id, K.STATUS[run.status] }
    end
  end
  return outcomes
end)
