
-- What runs say, in chunks numbered from 1 without gaps. Whoever holds the lock of a run's row may append.
CREATE TABLE kortyx.chunks (
    run bigint NOT NULL,
    number bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run, number)
);

ALTER TABLE kortyx.chunks ALTER COLUMN body SET STORAGE EXTERNAL;

-- What a run's response ended with, once it is complete. Programs of the version before complete none.
ALTER TABLE kortyx.runs ADD COLUMN response bytea;
ALTER TABLE kortyx.runs ALTER COLUMN response SET STORAGE EXTERNAL;
