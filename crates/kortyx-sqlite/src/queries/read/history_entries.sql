SELECT 'entry' AS tag, e.body FROM runs AS r CROSS JOIN entries AS e ON e.run = r.id WHERE r.run_id = $1 ORDER BY e.id;
