-- $1: keys of runs.
DELETE FROM interrupts WHERE run IN (SELECT value FROM json_each($1));
DELETE FROM entries WHERE run IN (SELECT value FROM json_each($1));
DELETE FROM chunks WHERE run IN (SELECT value FROM json_each($1));
DELETE FROM responses WHERE run IN (SELECT value FROM json_each($1));
DELETE FROM snapshots WHERE run IN (SELECT value FROM json_each($1));
DELETE FROM runs WHERE id IN (SELECT value FROM json_each($1));
