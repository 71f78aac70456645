INSERT INTO kortyx_schema (version, checksum, applied_at) VALUES ($1, $2, $3);
