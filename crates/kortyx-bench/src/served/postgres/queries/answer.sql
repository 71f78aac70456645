UPDATE bench.raw SET answer = $2 WHERE id = $1 RETURNING snapshot
