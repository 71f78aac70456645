-- What only some runs have. $1: keys of runs whose pending questions decide, $2: keys of runs that may get a driver,
-- $3: pairs of a run's key and the place of an answer, after which its answers are wanted.
SELECT 'pending' AS tag, * FROM interrupts
WHERE run IN (SELECT value FROM json_each($1)) AND status = 'pending'
ORDER BY created_at, id;
SELECT 'entry' AS tag, run, body FROM entries WHERE run IN (SELECT value FROM json_each($2)) ORDER BY id;
SELECT 'answer' AS tag, i.run, i.request_id, i.ask, i.status, i.answer, i.seq, i.answered_at, i.actor
FROM json_each($3) AS wanted
    CROSS JOIN interrupts AS i
        ON i.run = wanted.value ->> 0 AND i.status IN ('answered', 'expired') AND i.seq > wanted.value ->> 1;
