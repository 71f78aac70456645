SELECT 'checkpoint' AS tag, c.id AS key, 0 AS position, c.checkpoint_id, c.session, s.session_id, c.turn_index,
    c.created_at, c.parent, c.parent_session, c.forked_from, c.label, c.nodes, c.workflow, c.workflow_version,
    c.structured_stream_ids, c.run_id, c.pin_id, c.pin_version, c.pin_fingerprint, c.context, c.answers, c.is_head, p.state,
    p.snapshot, NULL AS request_id, NULL AS token, NULL AS ask, NULL AS node, NULL AS question, NULL AS expires_at,
    NULL AS default_answer, NULL AS optional_cancel, NULL AS after_response
FROM chosen
    CROSS JOIN checkpoints AS c ON c.id = chosen.id
    CROSS JOIN sessions AS s ON s.id = c.session
    CROSS JOIN checkpoint_payloads AS p ON p.checkpoint = c.id
UNION ALL
SELECT 'question', q.checkpoint, q.position, NULL, NULL, NULL, NULL,
    q.created_at, NULL, NULL, NULL, NULL, NULL, q.workflow, NULL,
    NULL, q.run_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, q.request_id, q.token, q.ask, q.node, q.question, q.expires_at,
    q.default_answer, q.optional_cancel, q.after_response
FROM chosen
    CROSS JOIN checkpoint_questions AS q ON q.checkpoint = chosen.id;
