-- `works_with` is the oldest version that a program may know and still work on this one.
CREATE TABLE IF NOT EXISTS kortyx.versions (
    version bigint PRIMARY KEY,
    works_with bigint NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
