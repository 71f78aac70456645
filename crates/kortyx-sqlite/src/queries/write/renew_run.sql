UPDATE runs SET lease_until = ? WHERE id = ?;
