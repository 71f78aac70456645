-- Closes questions past their time; a default becomes an answer. Then settles how their runs go on.
-- q: due [{id, run, member}], index, pins {PIN: 1} (definitions that the caller has), driver {ttl}
-- Replies: closed questions, ended runs, claimed runs
local q = cjson.decode(ARGV[2])

-- The default that a question was published with.
local function default_of(run, it)
  return (struct.unpack('>I4c0', redis.call('HGET', run.key, 'q:' .. it.id)))
end

-- Closes a question; its default, if it has one, becomes the run's next answer.
local function expire(run, it)
  K.close(run, it, K.EXPIRED)
  if it.has_default == 0 then return end
  K.give(run, it, default_of(run, it), '', 1)
  run.has_default = true
end

local function settle(run, ended, handed_out)
  if K.is_driven(run) then
    if run.has_default then K.attend(run) end
    return
  end
  local is_empty = #K.pending(run) == 0 and #K.answers_above(run, 0) == 0
  if run.stop == 1 then
    K.end_run(run, K.CANCELLED_RUN, K.CANCELLED, nil, nil)
  elseif is_empty then
    ended[#ended + 1] = { run.id }
    K.end_run(run, K.EXPIRED_RUN, K.EXPIRED, nil, nil)
  elseif run.status ~= K.PARKED and run.has_default then
    if q.pins[string.sub(run.w, 1, 32)] then
      K.grant(run, q.driver.ttl)
      handed_out[#handed_out + 1] = K.claimed(run)
    else
      K.leave(run)
    end
  end
end

return K.once(function()
  local found, is_found, expired, ended, handed_out = {}, {}, {}, {}, {}
  for _, due in ipairs(q.due) do
    local run = K.load_run(due.run)
    local it = run and K.question(run, due.id)
    if not it or it.status ~= K.PENDING then
      K.hint('-', q.index, 0, due.member)
    elseif K.is_due(it) then
      if not is_found[run] then found[#found + 1] = run end
      is_found[run] = true
      expire(run, it)
      expired[#expired + 1] = { '\0q', run.id, it.id }
    end
  end
  for _, run in ipairs(found) do settle(run, ended, handed_out) end
  return { expired, ended, handed_out }
end)
