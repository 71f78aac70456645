-- The table of the raw loop. Payloads are stored as they come, as the store's are.
CREATE TABLE bench.raw (id text COLLATE "C" PRIMARY KEY, snapshot bytea, question bytea, answer bytea, outcome bytea);
ALTER TABLE bench.raw ALTER COLUMN snapshot SET STORAGE EXTERNAL, ALTER COLUMN outcome SET STORAGE EXTERNAL;
