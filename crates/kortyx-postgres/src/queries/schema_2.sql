
-- What runs say, in chunks numbered from 1 without gaps. Whoever holds the lock of a run's row may append.
CREATE TABLE kortyx.chunks (
    run bigint NOT NULL,
    number bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run, number)
);

ALTER TABLE kortyx.chunks ALTER COLUMN body SET STORAGE EXTERNAL;
