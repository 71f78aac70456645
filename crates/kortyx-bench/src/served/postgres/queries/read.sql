SELECT question FROM bench.raw WHERE id = $1
