SELECT tag, data, p1, p2, p3 FROM kortyx.read_v2($1, $2::text::jsonb)
