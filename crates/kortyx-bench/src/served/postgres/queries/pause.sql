INSERT INTO bench.raw (id, snapshot, question) VALUES ($1, $2, $3)
