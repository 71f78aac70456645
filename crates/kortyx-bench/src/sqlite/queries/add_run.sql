INSERT INTO runs (
    id, run_id, session_id, workflow_id, workflow_version, fingerprint, context, status, created_at, updated_at, fence,
    lease_until, driver, answers, absorbed, cancel_requested, outcome, reason
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
