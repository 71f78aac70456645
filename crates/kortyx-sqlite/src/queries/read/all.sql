SELECT c.id FROM sessions AS s CROSS JOIN checkpoints AS c ON c.session = s.id WHERE s.session_id = $1
