SELECT i.*, r.run_id, r.context FROM interrupts AS i CROSS JOIN runs AS r ON r.id = i.run WHERE i.request_id = $1;
