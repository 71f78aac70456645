INSERT INTO checkpoint_questions (
    checkpoint, position, request_id, token, ask, workflow, node, question, created_at, expires_at, default_answer,
    optional_cancel, after_response, run_id
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);
