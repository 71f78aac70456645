-- Closes questions past their time; a default becomes an answer. Then settles how their runs go on.
-- q: due [{id, member}], index, pins {PIN: 1} (definitions that the caller has), driver {ttl}
-- Replies: closed questions, ended runs, claimed runs

-- Closes a question; its default, if it has one, becomes the run's next answer.
local function expire(run, it)
  local default = redis.call('HGET', key('q', it.id), 'default')
  close(it, 'expired')
  if not default then return end
  give(run, it, default, nil, true)
  redis.call('RPUSH', key('i', run.id), it.id)
  run.has_default = true
end

local function settle(run, ended, handed_out)
  if run.is_driven then
    if run.has_default then attend(run) end
    return
  end
  local is_empty = redis.call('EXISTS', key('o', run.id), key('i', run.id)) == 0
  if run.is_stopped then
    end_run(run, 'cancelled', 'cancelled', nil, nil)
  elseif is_empty then
    ended[#ended + 1] = run.id
    end_run(run, 'expired', 'expired', nil, nil)
  elseif run.status == 'parked' or not run.has_default then
    store_run(run)
  elseif q.pins[run.pin] then
    grant(run, q.driver)
    handed_out[#handed_out + 1] = claimed(run)
  else
    leave(run)
  end
end

return once(function()
  local runs, by_id, closed, ended, handed_out = {}, {}, {}, {}, {}
  for _, due in ipairs(q.due) do
    local it = question(due.id)
    if not it or not it.is_pending then
      hint('-', q.index, 0, due.member)
    elseif it.is_due then
      has_written = true
      if not by_id[it.run] then
        by_id[it.run] = load_run(it.run)
        runs[#runs + 1] = by_id[it.run]
      end
      expire(by_id[it.run], it)
      closed[#closed + 1] = { '@', 'q', it.id }
    end
  end
  for _, run in ipairs(runs) do settle(run, ended, handed_out) end
  return { closed, ended, handed_out }
end)
