-- What every transition starts with: its request, the time, the names of keys, and the keys of other slots.
--
-- KEYS[1]   the session's hash, `{prefix:s:DIGEST}:s`; every key that a script makes itself has the same hash tag
-- ARGV[1]   settings as JSON: p (prefix), single (1: one server, no slots), offset (of the clock, ms), memo, keep, idle (ms)
-- ARGV[2]   the request as JSON, `q` below; numbers of payloads are places in ARGV
-- ARGV[3…]  payloads, byte for byte
--
-- Keys of a session, all under its tag:
--   s          hash    the session itself: id, born, seq, runs, idle
--   a  d       zset    its runs that are not terminal, in order; those that are
--   o          zset    its open questions, by `stamp.seq.id`
--   r:RUN      hash    a run; `k:ASK` holds the id of the question that is open under this key
--   o:RUN      zset    the run's open questions, as in `o`
--   n:RUN      list    ids of all questions it ever asked
--   i:RUN      list    ids of answered questions that its snapshot does not hold
--   e:RUN      list    entries recorded since the snapshot
--   q:ID       hash    a question
--   t  cm  c   zset, hash, hash    checkpoints: ids by turn, when each was made, their content
--   m:OP       string  what a transition with this id replied, for a while
-- Keys of other slots are hints: l:KIND:ID (the session of an id) and {i:NAME} (indexes).
local env = cjson.decode(ARGV[1])
local q = cjson.decode(ARGV[2])
local tag = string.sub(KEYS[1], 1, -3)
local digest = string.match(tag, ':s:(%x+)}$')
local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2]) + env.offset * 1000
local now = math.floor(now_us / 1000)
local FOREVER = 253402300799999
local VERSION = '1'
local hints = {}
local has_written = false

local function int(number)
  return string.format('%.0f', number)
end

local function later(millis)
  return math.min(now + millis, FOREVER)
end

local function key(kind, id)
  if id then return tag .. ':' .. kind .. ':' .. id end
  return tag .. ':' .. kind
end

local function locator(kind, id)
  return env.p .. ':l:' .. kind .. ':' .. id
end

local function index(name)
  return '{' .. env.p .. ':i:' .. name .. '}'
end

-- Ends the transition before it wrote anything.
local function refuse(kind, message)
  error({ refused = kind, message = message })
end

-- Changes a key of another slot: here on a single server, else by the caller afterwards.
local function hint(op, name, score, member)
  if env.single ~= 1 then
    hints[#hints + 1] = { op, name, int(score), member or '' }
  elseif op == '+' then
    redis.call('ZADD', name, int(score), member)
  elseif op == '>' then
    redis.call('ZADD', name, 'GT', int(score), member)
  elseif op == '-' then
    redis.call('ZREM', name, member)
  elseif op == 'ttl' then
    redis.call('PEXPIRE', name, int(score))
  elseif op == 'del' then
    redis.call('DEL', name)
  elseif score > 0 then
    redis.call('SET', name, member, 'PX', int(score))
  else
    redis.call('SET', name, member)
  end
end

-- Says which session an id belongs to.
local function locate(kind, id, ttl)
  hint('set', locator(kind, id), ttl or 0, digest)
end

local function has(session, kind, id)
  if kind == 'c' then return redis.call('HEXISTS', session .. ':cm', id) == 1 end
  return redis.call('EXISTS', session .. ':' .. kind .. ':' .. id) == 1
end

-- Refuses an id that is taken. Without slots this looks into the other session too; with slots the caller did.
local function check_new(kind, id, what)
  local taken = has(tag, kind, id)
  if not taken and env.single == 1 then
    local owner = redis.call('GET', locator(kind, id))
    taken = owner and owner ~= digest and has('{' .. env.p .. ':s:' .. owner .. '}', kind, id)
  end
  if taken then refuse('exists', what .. ' ' .. id .. ' exists') end
end

-- Wakes whoever listens. Nobody may, or this user may not publish: it is only a hint.
local function signal(message)
  redis.pcall('PUBLISH', env.p .. ':signals', message)
end
