INSERT INTO interrupts (
    id, request_id, run, session_id, token, ask, workflow, node, question, created_at, expires_at, status,
    default_answer, optional_cancel, after_response
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
