INSERT INTO pending_context (key, value, created_at, interrupt, after_response, expires_at) VALUES (?, ?, ?, ?, ?, ?);
