-- $1: keys of sessions.
DELETE FROM sessions WHERE id IN (SELECT value FROM json_each($1));
