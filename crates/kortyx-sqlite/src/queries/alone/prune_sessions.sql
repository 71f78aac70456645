-- Sessions of which nothing is left.
SELECT s.id
FROM sessions AS s
WHERE s.updated_at <= $1 AND s.checkpoints = 0
ORDER BY s.updated_at LIMIT $2;
