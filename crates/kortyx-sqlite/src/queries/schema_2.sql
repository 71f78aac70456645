-- What runs said, in the order of its numbers.
CREATE TABLE chunks (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;

-- What the responses of runs ended with, once they are complete.
CREATE TABLE responses (
    run INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
