SELECT id FROM checkpoints WHERE checkpoint_id = $1
