-- Publishing and withdrawing questions. Only for scripts that do.

-- Publishes a question that was checked; `expires` is its deadline.
function K.publish(run, new, expires)
  local number = (run.published or 0) + 1
  run.published = number
  local it = { status = K.PENDING, opt = new.opt, after = new.after, has_default = new.has_default, by_default = 0, seq = 0, at = 0,
    created = K.now, expires = expires, place = K.stamp(number), digest = new.digest, id = new.id, token = new.token, ask = new.ask,
    actor = '', rest = new.rest }
  run.live[#run.live + 1] = it
  K.change_question(run, it)
  K.add(run.fields, 'q:' .. it.id, new.rest)
  K.add(K.opened, 0, K.open_member(run, it))
  K.locate('q', it.id, K.digest .. run.id)
  K.index_question(run, it, '+')
end

-- Refuses questions that the run (a new one: false) cannot publish once these keys were withdrawn, and ids that are taken.
function K.check_publish(run, new, withdraw, ids)
  local asks, named, fields = {}, {}, {}
  for i, it in ipairs(new) do
    if named[it.id] then K.refuse('exists', 'question ' .. it.id .. ' exists') end
    named[it.id] = true
    fields[i] = 'q:' .. it.id
    K.add(ids, 'q', it.id)
  end
  if run and #fields > 0 then
    for i, stored in ipairs(redis.call('HMGET', run.key, unpack(fields))) do
      if stored then K.refuse('exists', 'question ' .. new[i].id .. ' exists') end
    end
  end
  K.check_elsewhere(ids)
  if run then
    for _, it in ipairs(run.live) do
      if it.status == K.PENDING then asks[it.ask] = true end
    end
    for _, ask in ipairs(withdraw) do asks[ask] = nil end
  end
  for _, it in ipairs(new) do
    if asks[it.ask] then K.refuse('invalid', 'the run asks `' .. it.ask .. '` already') end
    asks[it.ask] = true
  end
end

-- Withdraws the run's open questions under these keys; others are ignored.
function K.withdraw_all(run, asks)
  if #asks == 0 then return end
  local wanted = {}
  for _, ask in ipairs(asks) do wanted[ask] = true end
  for _, it in ipairs(K.pending(run)) do
    if wanted[it.ask] then K.close(run, it, K.SUPERSEDED) end
  end
end

-- Reads packed questions and the keys to withdraw, and gives the place behind them: two counts, the questions, the keys.
-- `rests` is the place of the first question's rest among ARGV.
function K.read_asks(text, from, rests)
  local count, withdrawn, new, withdraw = nil, nil, {}, {}
  count, withdrawn, from = struct.unpack('>I4I4', text, from)
  for i = 1, count do
    local it = { rest = ARGV[rests + i - 1] }
    it.opt, it.after, it.has_default, it.ttl, it.digest, it.id, it.token, it.ask, from =
      struct.unpack('>BBBdc16I2c0I2c0I4c0', text, from)
    new[i] = it
  end
  for i = 1, withdrawn do withdraw[i], from = struct.unpack('>I4c0', text, from) end
  return new, withdraw, from
end
