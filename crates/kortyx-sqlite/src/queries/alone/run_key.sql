SELECT id FROM runs WHERE run_id = $1;
