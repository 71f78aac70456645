-- What a driver has not seen. $2: pairs of a run and the highest place that its driver has seen.
SELECT 'answer' AS tag, i.run, i.request_id, i.ask, i.status, i.answer, i.seq, i.answered_at, i.actor
FROM json_each($2) AS held
    CROSS JOIN runs AS r ON r.run_id = held.value ->> 0
    CROSS JOIN interrupts AS i
        ON i.run = r.id AND i.status IN ('answered', 'expired') AND i.seq > max(r.absorbed, held.value ->> 1);
