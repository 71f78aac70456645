-- What every transition starts with: its settings, the time, the names of keys, and the keys of other slots.
--
-- KEYS[1]   the session's hash, `{prefix:s:DIGEST}:s`; every key that a script makes itself has the same hash tag
-- ARGV[1]   settings, packed: prefix, 1 on one server without slots, offset of the clock (ms), keep and idle (ms), the
--           transition's own id ('' for one that need not be told from its repeat)
-- ARGV[2]   the request: packed where the script says so, else JSON
-- ARGV[3…]  payloads, byte for byte
--
-- Keys of a session, all under its tag:
--   s       hash    the session itself: id, born, n (its runs), t (1: it has checkpoints), idle (since when, if it is)
--   o       zset    what is open, in order: its questions by `stamp.number.ID\31RUN`, its runs by `rstamp.number.RUN`
--   r:RUN   hash    a run with all that belongs to it, see run.lua
--   t  c    zset, hash    checkpoints: ids by turn, and what is in them
--   m:OP    string  what a transition of more than one run replied, for a while
-- Keys of other slots are hints: l:KIND:ID (where an id belongs: the session's digest, of a question followed by the run) and
-- {i:NAME} (indexes).
local K = {}
K.prefix, K.single, K.offset, K.keep, K.idle, K.op = struct.unpack('>I2c0BdddI2c0', ARGV[1])
K.is_single = K.single == 1
K.tag = string.sub(KEYS[1], 1, -3)
K.digest = string.sub(KEYS[1], #K.prefix + 5, -4)
-- In a slot that is moving to another server this fails, since the key is nowhere: so that no transition runs where some of
-- its keys are gone already.
if not K.is_single then redis.call('EXISTS', K.tag .. ':none') end
local time = redis.call('TIME')
K.now_us = time[1] * 1000000 + time[2] + K.offset * 1000
K.now = math.floor(K.now_us / 1000)
K.FOREVER = 253402300799999
K.VERSION = 2
-- How long a transition's reply is kept for a repeat of it (ms): more than any patience.
K.MEMO = 60000
-- The most arguments of a command.
K.MANY = 4000
-- Kept until a transition is done, so that its first command writes: on a full server that is where it ends.
K.hints = {}
-- What is to be said of many keys at once when the transition is done: members that come and go in `o`, locators that are new,
-- and those that get a time to live.
K.opened, K.closed, K.placed, K.fading = {}, {}, {}, {}

function K.later(millis)
  return math.min(K.now + millis, K.FOREVER)
end

function K.int(number)
  return string.format('%.0f', number)
end

function K.key(kind, id)
  if id then return K.tag .. ':' .. kind .. ':' .. id end
  return K.tag .. ':' .. kind
end

function K.locator(kind, id)
  return K.prefix .. ':l:' .. kind .. ':' .. id
end

function K.index(name)
  return '{' .. K.prefix .. ':i:' .. name .. '}'
end

function K.add(list, a, b)
  local count = #list
  list[count + 1] = a
  if b ~= nil then list[count + 2] = b end
end

-- A command with as many arguments as there are; of pairs, none is parted.
function K.with_all(command, name, list)
  for from = 1, #list, K.MANY do
    redis.call(command, name, unpack(list, from, math.min(from + K.MANY - 1, #list)))
  end
end

-- Ends the transition before it wrote anything.
function K.refuse(kind, message)
  error({ refused = kind, message = message })
end

-- Changes a key of another slot: on a single server when all else is written, else by the caller afterwards.
function K.hint(what, name, score, member)
  K.hints[#K.hints + 1] = K.is_single and { what, name, score, member } or { what, name, K.int(score), member or '' }
end

function K.take_hint(it)
  local what, name, score, member = it[1], it[2], it[3], it[4]
  if what == '+' then
    redis.call('ZADD', name, score, member)
  elseif what == '-' then
    redis.call('ZREM', name, member)
  elseif what == '>' then
    redis.call('ZADD', name, 'GT', score, member)
  elseif what == 'ttl' then
    redis.call('PEXPIRE', name, score)
  elseif what == 'del' then
    redis.call('DEL', name)
  elseif score > 0 then
    redis.call('SET', name, member, 'PX', score)
  else
    redis.call('SET', name, member)
  end
end

-- What is left to the caller: nothing on a single server, where it is done now.
function K.hints_left()
  if not K.is_single then return K.hints end
  for i = 1, #K.hints do K.take_hint(K.hints[i]) end
  return {}
end

-- Whether an id that a locator names is where it says.
function K.is_held(kind, id, owner)
  local there = '{' .. K.prefix .. ':s:' .. string.sub(owner, 1, 32) .. '}:'
  if kind == 'c' then return redis.call('HEXISTS', there .. 'c', id) == 1 end
  if kind == 'r' then return redis.call('EXISTS', there .. 'r:' .. id) == 1 end
  return redis.call('HEXISTS', there .. 'r:' .. string.sub(owner, 33), 'q:' .. id) == 1
end

K.WORD = { r = 'run', q = 'question', c = 'checkpoint' }

-- Refuses ids that other sessions have, given as kind, id, kind, id, …; with slots the caller did.
function K.check_elsewhere(ids)
  if not K.is_single or #ids == 0 then return end
  local names = {}
  for i = 1, #ids, 2 do names[#names + 1] = K.locator(ids[i], ids[i + 1]) end
  for from = 1, #names, K.MANY do
    local last = math.min(from + K.MANY - 1, #names)
    for i, owner in ipairs(redis.call('MGET', unpack(names, from, last))) do
      local kind, id = ids[2 * (from + i) - 3], ids[2 * (from + i) - 2]
      if owner and K.is_held(kind, id, owner) then K.refuse('exists', K.WORD[kind] .. ' ' .. id .. ' exists') end
    end
  end
end

-- Says where an id belongs.
function K.locate(kind, id, value)
  if K.is_single then
    K.add(K.placed, K.locator(kind, id), value)
  else
    K.hint('set', K.locator(kind, id), 0, value)
  end
end

function K.fade()
  for _, name in ipairs(K.fading) do K.hint('ttl', name, K.keep) end
end

-- Says what was put off until the end.
function K.settle_keys()
  if #K.opened > 0 then K.with_all('ZADD', K.key('o'), K.opened) end
  if #K.closed > 0 then K.with_all('ZREM', K.key('o'), K.closed) end
  for from = 1, #K.placed, K.MANY do redis.call('MSET', unpack(K.placed, from, math.min(from + K.MANY - 1, #K.placed))) end
end

-- Wakes whoever listens. Nobody may, or this user may not publish: it is only a hint.
function K.signal(message)
  redis.pcall('PUBLISH', K.prefix .. ':signals', message)
end
