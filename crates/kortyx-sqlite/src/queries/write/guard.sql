-- Begins, and fails when another connection has written since the data version was $1: the text is no JSON.
BEGIN IMMEDIATE;
SELECT 1 FROM pragma_data_version WHERE CASE WHEN data_version <> ? THEN json('stale since ' || data_version) END;
