CREATE TABLE IF NOT EXISTS kortyx_schema (
    version INTEGER PRIMARY KEY,
    checksum TEXT NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;
SELECT version, checksum FROM kortyx_schema ORDER BY version;
