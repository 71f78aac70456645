-- The ordinary case: a new run asks one question, on a server without slots; no checkpoint, nothing in the way. It writes what
-- the rest of this script would, which decides over everything else.
-- Replies: 'S' and the question's record
local function ordinary()
  local prefix, single, offset, _, _, op = struct.unpack('>I2c0BdddI2c0', ARGV[1])
  local is_new, run_id, _, _, count, withdrawn, from = struct.unpack('>BI2c0ddI4I4', ARGV[2])
  if is_new ~= 1 or count ~= 1 or withdrawn ~= 0 or single == 0 or ARGV[7] then return nil end
  -- What follows the numbers of the question is stored as it came: digest of the token, id, token, ask.
  local may_cancel, after, has_default, ttl, named_from = struct.unpack('>BBBd', ARGV[2], from)
  local id = struct.unpack('>I2c0', ARGV[2], named_from + 16)
  local _, pairs_of, _, _, session = struct.unpack(FIXED, ARGV[5])
  local call, key = redis.call, KEYS[1]
  local base, digest = string.sub(key, 1, -2), string.sub(key, -34, -3)
  local run_key = base .. 'r:' .. run_id
  -- The run counts twice: 1 means that only the session is there.
  local there = call('EXISTS', run_key, run_key, key)
  local known = there == 1 and call('HMGET', key, 'n', 't', 'idle')
  if ttl <= 0 or there > 1 or known and not known[1] or known and known[3] then return nil end
  if call('MSETNX', locator(prefix, 'r', run_id), digest, locator(prefix, 'q', id), digest .. run_id) == 0 then return nil end

  local time = call('TIME')
  local now_us = time[1] * 1000000 + time[2] + offset * 1000
  local now = math.floor(now_us / 1000)
  local expires, moment = math.min(now + ttl, FOREVER), string.format('%018d.', now_us)
  local stamp, place, name = moment .. '000000000000.', moment .. '000000000001.', id .. '\31' .. run_id
  local record = struct.pack('>BBBBBBddddc32', VERSION, PENDING, may_cancel, after, has_default, 0, 0, 0, now, expires, place)
    .. string.sub(ARGV[2], named_from) .. '\0\0\0\0'
  local head = struct.pack(HEAD, VERSION, SUSPENDED, 0, 0, -1, 0, 1, now, now, 0, 0, stamp)
  local said = struct.pack('>dI2c0I4', now, #op, op, #id + 1) .. 'S' .. id
  call('HSET', run_key, 'h', head, 'k', record, 'f', ARGV[5], 'w', ARGV[3], 's', ARGV[4], 'q:' .. id, ARGV[6], 'm', said)
  if known then
    call('HSET', key, 'n', integer(known[1] + 1))
    if not known[2] then call('PERSIST', key) end
  else
    call('HSET', key, 'v', integer(VERSION), 'id', session, 'born', integer(now_us), 'n', '1')
  end
  call('ZADD', base .. 'o', '0', place .. name, '0', 'r' .. stamp .. run_id)
  local index = '{' .. prefix .. ':i:'
  call('ZADD', index .. 'due}', integer(expires), place .. digest .. '.' .. name)
  if pairs_of ~= '' then
    for pair in string.gmatch(pairs_of, '%x+') do call('ZADD', index .. 'x:' .. pair .. '}', '0', place .. digest .. '.' .. name) end
  end
  return 'S' .. record
end

local reply = ordinary()
if reply then return reply end
