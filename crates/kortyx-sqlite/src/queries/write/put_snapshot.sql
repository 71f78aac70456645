INSERT INTO snapshots (run, body) VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET body = excluded.body;
