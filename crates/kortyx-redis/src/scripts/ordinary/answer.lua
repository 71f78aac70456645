-- The ordinary case: one answer to the only question of a run that waits, by its token and to drive it, on a server without
-- slots. It writes what the rest of this script would, which decides over everything else.
-- Replies: in one text 'A', the lengths of the run's head, its fixed part and its definition, these, and the question's record;
--          and the snapshot
local function ordinary()
  local prefix, single, offset, _, _, op = struct.unpack('>I2c0BdddI2c0', ARGV[1])
  local drives, ttl, dry, count, from = struct.unpack('>BdBI4', ARGV[2])
  if count ~= 1 or drives == 0 or dry == 1 or single == 0 then return nil end
  local id, run_id, proof, _, of_session, of_run, cancels, actor =
    struct.unpack('>I2c0I2c0I2c0I4c0I2c0I2c0BI4c0', ARGV[2], from)
  if proof == '' or cancels == 1 or of_run ~= '' and of_run ~= run_id then return nil end
  local call, key = redis.call, KEYS[1]
  local base, home = string.sub(key, 1, -2), string.sub(key, -34, -3)
  local run_key = base .. 'r:' .. run_id
  local stored = call('HMGET', run_key, 'h', 'k', 'f', 'w', 'm', 's', 'u')
  local head, live, fixed, definition, said = stored[1], stored[2], stored[3], stored[4], stored[5]
  if stored[7] or not head or not live or live == '' or not said or #said > KEPT_REPLIES or string.find(said, op, 1, true) then
    return nil
  end
  if string.byte(head) ~= VERSION or string.byte(live) ~= VERSION then return nil end

  local _, status, stop, fence, _, answers, epoch, created, _, entries, moved, stamp = struct.unpack(HEAD, head)
  local _, asked, may_cancel, after, has_default, _, _, _, _, expires, place, digest, asked_id, _, _, _, behind =
    struct.unpack(RECORD, live)
  local _, pairs_of, _, _, session = struct.unpack(FIXED, fixed)
  local time = call('TIME')
  local now = math.floor((time[1] * 1000000 + time[2] + offset * 1000) / 1000)
  if status ~= SUSPENDED or stop == 1 or entries > 0 or asked ~= PENDING or behind <= #live or asked_id ~= id or digest ~= proof
    or expires <= now or of_session ~= '' and of_session ~= session then
    return nil
  end

  answers, fence, epoch = answers + 1, fence + 1, epoch + 1
  local till, name = math.min(now + ttl, FOREVER), id .. '\31' .. run_id
  -- What a record says from the moment it was made to the ask stays; an open question has no actor yet.
  live = struct.pack('>BBBBBBdd', VERSION, ANSWERED, may_cancel, after, has_default, 0, answers, now) .. string.sub(live, 23, -5)
    .. struct.pack('>I4', #actor) .. actor
  head = struct.pack(HEAD, VERSION, RUNNING, 0, fence, till, answers, epoch, created, now, 0, moved, stamp)
  said = struct.pack('>dI2c0I4', now, #op, op, #id + 17) .. 'A' .. struct.pack('>dd', fence, till) .. id .. said
  call('HSET', run_key, 'h', head, 'k', live, 'm', said, 'a:' .. id, ARGV[3])
  call('ZREM', base .. 'o', place .. name)
  local index = '{' .. prefix .. ':i:'
  call('ZREM', index .. 'due}', place .. home .. '.' .. name)
  if pairs_of ~= '' then
    for pair in string.gmatch(pairs_of, '%x+') do call('ZREM', index .. 'x:' .. pair .. '}', place .. home .. '.' .. name) end
  end
  local member = stamp .. home .. string.format('.%d.', epoch) .. run_id
  call('ZADD', index .. 'lease:' .. string.sub(definition, 1, 32) .. '}', integer(till), member)
  return { 'A' .. struct.pack('>I4I4I4', #head, #fixed, #definition) .. head .. fixed .. definition .. live, stored[6] or '' }
end

local reply = ordinary()
if reply then return reply end
