UPDATE bench.raw SET outcome = $2, snapshot = NULL WHERE id = $1
