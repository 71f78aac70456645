SELECT tag, data, p1, p2, p3 FROM kortyx.read_v1($1, $2::text::jsonb)
