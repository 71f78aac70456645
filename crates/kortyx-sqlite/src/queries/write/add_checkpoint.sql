INSERT INTO checkpoints (
    id, checkpoint_id, session, turn_index, created_at, parent, parent_session, forked_from, label, nodes, workflow,
    workflow_version, structured_stream_ids, run_id, pin_id, pin_version, pin_fingerprint, context, answers, is_head
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1);
