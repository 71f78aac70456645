SELECT i.*, 'question' AS tag, r.run_id, r.context
FROM runs AS r CROSS JOIN interrupts AS i ON i.run = r.id WHERE r.run_id = $1 ORDER BY i.created_at, i.id;
