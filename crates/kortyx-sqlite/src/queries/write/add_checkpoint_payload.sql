INSERT INTO checkpoint_payloads (checkpoint, state, snapshot) VALUES (?, ?, ?);
