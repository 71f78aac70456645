-- Questions: a packed record of what changes and of what scripts look at; the rest is stored as it came.

K.PENDING, K.ANSWERED, K.CANCELLED, K.EXPIRED, K.SUPERSEDED = PENDING, ANSWERED, 3, 4, 5
K.NAMES = { 'pending', 'answered', 'cancelled', 'expired', 'superseded' }

-- Reads the record at a place of a text; gives the place behind it too.
function K.read_question(text, from)
  local it, version, behind = {}, nil, nil
  version, it.status, it.opt, it.after, it.has_default, it.by_default, it.seq, it.at, it.created, it.expires, it.place,
    it.digest, it.id, it.token, it.ask, it.actor, behind = struct.unpack(RECORD, text, from)
  if version ~= VERSION then K.refuse('corrupt', 'a question has format ' .. version .. ', this code knows ' .. VERSION) end
  it.packed = string.sub(text, from, behind - 1)
  return it, behind
end

function K.is_due(it)
  return it.expires <= K.now
end

function K.pack_question(it)
  if not it.packed then
    it.packed = struct.pack(RECORD, VERSION, it.status, it.opt, it.after, it.has_default, it.by_default, it.seq, it.at,
      it.created, it.expires, it.place, it.digest, #it.id, it.id, #it.token, it.token, #it.ask, it.ask, #it.actor, it.actor)
  end
  return it.packed
end

-- The record as it reads now: one past its time has expired.
function K.record_now(it)
  local packed = K.pack_question(it)
  if it.status ~= K.PENDING or not K.is_due(it) then return packed end
  return string.sub(packed, 1, 1) .. string.char(K.EXPIRED) .. string.sub(packed, 3)
end

-- Whether a question was answered for its run, by a person or by default.
function K.is_answer(it)
  return it.seq > 0 and it.status ~= K.CANCELLED
end

-- A question's name in `o`, and in indexes.
function K.open_member(run, it)
  return it.place .. it.id .. '\31' .. run.id
end

-- Adds a question to the indexes, or takes it out.
function K.index_question(run, it, what)
  local member = it.place .. K.digest .. '.' .. it.id .. '\31' .. run.id
  K.hint(what, K.index('due'), it.expires, member)
  if run.pairs ~= '' then
    for pair in string.gmatch(run.pairs, '%x+') do K.hint(what, K.index('x:' .. pair), 0, member) end
  end
end
