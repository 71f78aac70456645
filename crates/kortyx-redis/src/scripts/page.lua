-- Reads a page of open questions of the session or of one run, oldest first.
-- q: run (absent: the session), session, context, after (a place; '' for the start), limit, flag (0, 1 or absent), scan
-- Replies: [question], the place after which the page goes on ('' at the end)
local q = cjson.decode(ARGV[2])

local function is_wanted(run, it)
  return it.status == K.PENDING and not K.is_due(it) and (not q.flag or it.after == q.flag)
    and K.is_inside(run, { session = q.session, context = q.context })
end

local function of_run()
  local run, rows, last = K.load_run(q.run), {}, ''
  for _, it in ipairs(run and run.live or {}) do
    -- Places have one width: as texts they are in the order of their numbers.
    if it.place > string.sub(q.after, 1, 32) and is_wanted(run, it) then
      if #rows == q.limit then return { rows, last } end
      rows[#rows + 1], last = { '\0q', run.id, it.id }, it.place .. it.id
    end
  end
  return { rows, '' }
end

local function of_session()
  local from = q.after == '' and '-' or '(' .. q.after .. '\31\255'
  local rows, last, scanned = {}, '', 0
  while true do
    local members = redis.call('ZRANGE', K.key('o'), from, '(r', 'BYLEX', 'LIMIT', 0, q.limit + 1)
    for _, member in ipairs(members) do
      local at, run_id = string.match(member, '^(.-)\31(.*)$')
      local run = K.load_run(run_id)
      local it = run and K.question(run, string.sub(at, 33))
      if it and is_wanted(run, it) then
        if #rows == q.limit then return { rows, last } end
        rows[#rows + 1] = { '\0q', run_id, it.id }
      elseif scanned >= q.scan then
        return { rows, at }
      end
      last, scanned = at, scanned + 1
    end
    if #members <= q.limit then return { rows, '' } end
    from = '(' .. members[#members]
  end
end

return K.once(q.run and of_run or of_session)
