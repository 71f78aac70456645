-- $1: only runs before this one, $2: look at no more. How many those are, and the last of them.
SELECT count(*) AS seen, min(id) AS edge FROM (SELECT id FROM runs WHERE id < $1 ORDER BY id DESC LIMIT $2) AS page;
