-- Appends entries, publishes and withdraws questions, reads answers.
-- q: run, fence, entries [payload], publish [question], withdraw [ask], seen
-- Replies: answers, published questions, whether the run was asked to stop
return once(function()
  local run = leased()
  check_publish(run, q.publish, q.withdraw)
  has_written = true
  withdraw_all(run, q.withdraw)
  local published = {}
  for i, new in ipairs(q.publish) do
    publish(run, new, later(new.ttl))
    published[i] = { '@', 'q', new.id }
  end
  for _, place_of in ipairs(q.entries) do redis.call('RPUSH', key('e', run.id), ARGV[place_of]) end
  run.updated = now
  store_run(run)
  return { unseen(run, q.seen), published, run.is_stopped and 1 or 0 }
end)
