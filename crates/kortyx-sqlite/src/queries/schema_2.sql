-- What runs said, in the order of its numbers.
CREATE TABLE chunks (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;
