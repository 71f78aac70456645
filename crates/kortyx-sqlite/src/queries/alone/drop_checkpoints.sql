-- $1: keys of checkpoints.
UPDATE sessions
SET checkpoints = checkpoints - (
    SELECT count(*) FROM checkpoints AS c
    WHERE c.session = sessions.id AND c.id IN (SELECT value FROM json_each($1))
)
WHERE id IN (SELECT session FROM checkpoints WHERE id IN (SELECT value FROM json_each($1)));
DELETE FROM checkpoint_questions WHERE checkpoint IN (SELECT value FROM json_each($1));
DELETE FROM checkpoint_payloads WHERE checkpoint IN (SELECT value FROM json_each($1));
DELETE FROM checkpoints WHERE id IN (SELECT value FROM json_each($1));
