SELECT id FROM runs WHERE session_id = $1 AND status IN ('running', 'suspended', 'parked') ORDER BY id;
