SELECT tag, data, p1, p2, p3 FROM kortyx.quiet_v2($1, $2::text::uuid, $3, $4::text::jsonb, $5)
