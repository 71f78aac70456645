-- The ordinary case: a run ends that asked one question in all and has its answer, on a server without slots; no checkpoint, no
-- reason, no entries, nothing said. It writes what the rest of this script would, which decides over everything else.
-- Replies: 'D'
local function ordinary()
  local prefix, single, offset, keep, idle, op = struct.unpack('>I2c0BdddI2c0', ARGV[1])
  local is_new, run_id, fence, seen, ended, has_reason = struct.unpack('>BI2c0ddBB', ARGV[2])
  if is_new > 0 or single == 0 or has_reason == 1 or ARGV[6] then return nil end
  local call, key = redis.call, KEYS[1]
  local base = string.sub(key, 1, -2)
  local run_key = base .. 'r:' .. run_id
  local stored = call('HMGET', run_key, 'h', 'k', 'w', 'm', 'o')
  local head, live, definition, said = stored[1], stored[2], stored[3], stored[4]
  if stored[5] or not head or not live or live == '' or not said or #said > KEPT_REPLIES or string.find(said, op, 1, true) then return nil end
  if definition ~= ARGV[3] or string.byte(head) ~= VERSION or string.byte(live) ~= VERSION then return nil end

  local _, status, stop, granted, till, answers, epoch, created, _, entries, moved, stamp = struct.unpack(HEAD, head)
  local _, asked, _, _, _, _, seq, _, _, _, _, _, id, _, _, _, behind = struct.unpack(RECORD, live)
  if status ~= RUNNING or granted ~= fence or till < 0 or entries > 0 or moved > 0 or asked == PENDING or behind <= #live
    or seq > seen then
    return nil
  end

  local time = call('TIME')
  local now = math.floor((time[1] * 1000000 + time[2] + offset * 1000) / 1000)
  head = struct.pack(HEAD, VERSION, ended, stop, fence, -1, answers, epoch + 1, created, now, 0, 0, stamp)
  said = struct.pack('>dI2c0I4', now, #op, op, 1) .. 'D' .. said
  call('HSET', run_key, 'h', head, 's', '', 'z', ARGV[4], 'm', said)
  local moment, kept = integer(now), integer(keep)
  call('PEXPIRE', run_key, kept)
  call('ZREM', base .. 'o', 'r' .. stamp .. run_id)
  local index = '{' .. prefix .. ':i:'
  local home = string.sub(key, -34, -3)
  local member = stamp .. home .. '.'
  if call('EXISTS', base .. 'o') == 0 then
    idle = integer(idle)
    call('PEXPIRE', key, idle)
    local known = call('HMGET', key, 't', 'born')
    if known[1] then
      call('HSET', key, 'idle', moment)
      call('PEXPIRE', base .. 't', idle)
      call('PEXPIRE', base .. 'c', idle)
      call('ZADD', index .. 'idle}', 'GT', moment, home .. '.' .. (known[2] or '0'))
    end
  end
  call('PEXPIRE', locator(prefix, 'r', run_id), kept)
  call('PEXPIRE', locator(prefix, 'q', id), kept)
  call('ZREM', index .. 'lease:' .. string.sub(definition, 1, 32) .. '}', member .. string.format('%d.', epoch) .. run_id)
  call('ZADD', index .. 'ended}', moment, member .. string.format('%d.', epoch + 1) .. run_id)
  return 'D'
end

local reply = ordinary()
if reply then return reply end
