-- What every transition starts with: its settings, the time, the names of keys, and the keys of other slots.
--
-- KEYS[1]   the session's hash, `prefix:{PART}:DIGEST:s`, whose part is the first three digits of the digest; every key that a
--           script makes itself has the same hash tag
-- ARGV[1]   settings, packed: prefix, 1 on one server without slots, offset of the clock (ms), keep and idle (ms), the
--           transition's own id ('' for one that need not be told from its repeat)
-- ARGV[2]   the request: packed where the script says so, else JSON
-- ARGV[3…]  payloads, byte for byte; snapshots as they are stored
--
-- Keys of a session, all under its tag:
--   s       hash    the session itself: id, born, n (its runs), t (1: it has checkpoints), idle (since when, if it
--                   is and has checkpoints)
--   o       zset    what is open, in order: its questions by `stamp.number.ID\31RUN`, its runs by `rstamp.number.RUN`
--   r:RUN   hash    a run with all that belongs to it but what it said, see run.lua
--   out:RUN list    what it said, if it said anything: chunks as they came, the first of them number 1
--   t  c    zset, hash    checkpoints: ids by turn, and what is in them
--   m:OP    string  what a transition of more than one run replied, for a while
-- Keys beside sessions are hints: `prefix:{PART}:l:KIND:ID`, where an id belongs: the session's digest, of a question followed by
-- the run; its part is the id's. An id that was made for the session has the session's part, so this transition writes it;
-- what lies in other slots, like `{prefix:i:NAME}`, an index, is left to the caller.
local K = {}
K.prefix, K.single, K.offset, K.keep, K.idle, K.op = struct.unpack('>I2c0BdddI2c0', ARGV[1])
K.is_single = K.single == 1
K.tag = string.sub(KEYS[1], 1, -3)
K.part = string.sub(KEYS[1], 1, #K.prefix + 7)
K.digest = string.sub(KEYS[1], -34, -3)
-- In a slot that is moving to another server this fails, since the key is nowhere: so that no transition runs where some of
-- its keys are gone already.
if not K.is_single then redis.call('EXISTS', K.tag .. ':none') end
local time = redis.call('TIME')
K.now_us = time[1] * 1000000 + time[2] + K.offset * 1000
K.now = math.floor(K.now_us / 1000)
-- How long a transition's reply is kept for a repeat of it (ms): more than any patience.
K.MEMO = 60000
-- The most arguments of a command.
K.MANY = 4000
-- Kept until a transition is done, so that its first command writes: on a full server that is where it ends.
K.hints = {}
-- Those that are of other slots.
K.left = {}
-- What is to be said of many keys at once when the transition is done: members that come and go in `o`, locators that are new,
-- and those that get a time to live.
K.opened, K.closed, K.placed, K.fading = {}, {}, {}, {}

function K.later(millis)
  return math.min(K.now + millis, FOREVER)
end

function K.int(number)
  return string.format('%.0f', number)
end

function K.key(kind, id)
  if id then return K.tag .. ':' .. kind .. ':' .. id end
  return K.tag .. ':' .. kind
end

function K.locator(kind, id)
  return locator(K.prefix, kind, id)
end

-- Whether a key is of a slot that this transition may write.
function K.is_near(name)
  return K.is_single or string.sub(name, 1, #K.part) == K.part
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

-- Changes a key beside the session: when all else is written, or, of another slot, by the caller afterwards.
function K.hint(what, name, score, member)
  if K.is_near(name) then
    K.hints[#K.hints + 1] = { what, name, score, member }
  else
    K.left[#K.left + 1] = { what, name, K.int(score), member or '' }
  end
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

-- Does what can be done here; gives what is left to the caller.
function K.hints_left()
  for i = 1, #K.hints do K.take_hint(K.hints[i]) end
  return K.left
end

-- Whether an id that a locator names is where it says, which may be another slot: then the caller finds out.
function K.is_held(kind, id, owner)
  local there = K.prefix .. ':{' .. string.sub(owner, 1, 3) .. '}:' .. string.sub(owner, 1, 32) .. ':'
  if not K.is_near(there) then K.refuse('elsewhere', K.WORD[kind] .. ' ' .. id) end
  if kind == 'c' then return redis.call('HEXISTS', there .. 'c', id) == 1 end
  if kind == 'r' then return redis.call('EXISTS', there .. 'r:' .. id) == 1 end
  return redis.call('HEXISTS', there .. 'r:' .. string.sub(owner, 33), 'q:' .. id) == 1
end

K.WORD = { r = 'run', q = 'question', c = 'checkpoint' }

-- Refuses ids that other sessions have, given as kind, id, kind, id, …; those that say another slot the caller took.
function K.check_elsewhere(ids)
  local names, near = {}, {}
  for i = 1, #ids, 2 do
    local name = K.locator(ids[i], ids[i + 1])
    if K.is_near(name) then names[#names + 1], near[#near + 1] = name, i end
  end
  for from = 1, #names, K.MANY do
    local last = math.min(from + K.MANY - 1, #names)
    for i, owner in ipairs(redis.call('MGET', unpack(names, from, last))) do
      local at = near[from + i - 1]
      if owner and K.is_held(ids[at], ids[at + 1], owner) then
        K.refuse('exists', K.WORD[ids[at]] .. ' ' .. ids[at + 1] .. ' exists')
      end
    end
  end
end

-- Says where an id belongs.
function K.locate(kind, id, value)
  local name = K.locator(kind, id)
  if K.is_near(name) then
    K.add(K.placed, name, value)
  else
    K.hint('set', name, 0, value)
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

-- Wakes workers. Where the caller tells the indexes, it also tells of this, when workers find what they are woken for.
function K.wake()
  if K.is_single then K.signal('work') else K.hint('!', K.prefix .. ':signals', 0, 'work') end
end

-- Wakes whoever listens. Nobody may, or this user may not publish: it is only a hint.
function K.signal(message)
  redis.pcall('PUBLISH', K.prefix .. ':signals', message)
end
