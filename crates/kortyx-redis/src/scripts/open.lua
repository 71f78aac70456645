-- Makes a run durable and grants its first lease.
-- q: run {id, session, context, pairs}, workflow {id, version, fingerprint, pin}, driver {ttl}, snapshot (payload)
-- Replies: fence, end of the lease
return once(function()
  check_new('r', q.run.id, 'run')
  local run = add_run(q.run, q.workflow, ARGV[q.snapshot])
  grant(run, q.driver)
  return { int(run.fence), int(run.till) }
end)
