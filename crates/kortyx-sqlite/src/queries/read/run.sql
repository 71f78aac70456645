SELECT r.*, p.body AS response FROM runs AS r LEFT JOIN responses AS p ON p.run = r.id WHERE r.run_id = $1;
