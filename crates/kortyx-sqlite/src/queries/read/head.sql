SELECT head FROM sessions WHERE session_id = $1
