UPDATE runs
SET workflow_id = ?, workflow_version = ?, fingerprint = ?, status = ?, updated_at = ?, fence = ?, lease_until = ?,
    driver = ?, answers = ?, absorbed = ?, cancel_requested = ?, outcome = ?, reason = ?
WHERE id = ?;
