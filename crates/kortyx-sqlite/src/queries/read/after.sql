SELECT id FROM checkpoints WHERE session = $1 AND turn_index > $2
