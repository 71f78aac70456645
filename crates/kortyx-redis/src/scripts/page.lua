-- Reads a page of open questions of the session or of one run, oldest first.
-- q: run (absent: the session), session, context, after (a place; '' for the start), limit, flag ('0', '1' or absent), scan
-- Replies: [question], the place after which the page goes on ('' at the end)
local function is_wanted(id)
  local it = question(id)
  if not it or it.is_due then return false end
  if q.flag and redis.call('HGET', key('q', id), 'after') ~= q.flag then return false end
  return is_inside(it.run, { session = q.session, context = q.context })
end

return once(function()
  local name = q.run and key('o', q.run) or key('o')
  local from = q.after == '' and '-' or '(' .. q.after
  local rows, last, scanned = {}, '', 0
  while true do
    local members = redis.call('ZRANGE', name, from, '+', 'BYLEX', 'LIMIT', 0, q.limit + 1)
    for _, member in ipairs(members) do
      local id = string.sub(member, 33)
      if is_wanted(id) then
        if #rows == q.limit then return { rows, last } end
        rows[#rows + 1] = { '@', 'q', id }
      elseif scanned >= q.scan then
        return { rows, member }
      end
      last, scanned = member, scanned + 1
    end
    if #members <= q.limit then return { rows, '' } end
    from = '(' .. members[#members]
  end
end)
