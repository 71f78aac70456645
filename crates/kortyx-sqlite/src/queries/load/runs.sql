-- $1: ids of runs.
SELECT 'run' AS tag, * FROM runs WHERE run_id IN (SELECT value FROM json_each($1));
