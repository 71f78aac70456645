-- How records are packed, see run.lua and question.lua, what the ordinary case of a transition needs to know of them, and how keys
-- and arguments are written.
local VERSION, FOREVER = 2, 253402300799999
-- A run's head: version, status, asked to stop; fence, end of the lease (-1: none), answers, epoch, made, changed, entries,
-- questions that are in `d:ID`; stamp and number.
local HEAD = '>BBBddddddddc32'
-- What never changes of a run: version, digests of context pairs, context as JSON, the run's id, the session's id.
local FIXED = '>BI4c0I4c0I2c0I2c0'
-- A question: version, status, may be cancelled, after the response, has a default, by default; number and time of the answer,
-- made, deadline; stamp and number; digest of the token; id, token, ask, actor (behind `=`).
local RECORD = '>BBBBBBddddc32c16I2c0I2c0I4c0I4c0'
local RUNNING, SUSPENDED = 1, 2
local PENDING, ANSWERED = 1, 2
-- How many bytes of replies a run keeps whatever their age.
local KEPT_REPLIES = 500

-- A number of an argument. The server takes several times as long to write one.
local function integer(number)
  return string.format('%d', number)
end

-- Where an id's place is said: in the part that the id says, by its last three digits or else those of its hash.
local function locator(prefix, kind, id)
  local digits = string.sub(id, -3)
  if not string.find(digits, '^[0-9a-f][0-9a-f][0-9a-f]$') then digits = string.sub(redis.sha1hex(id), 1, 3) end
  return prefix .. ':{' .. digits .. '}:l:' .. kind .. ':' .. id
end
