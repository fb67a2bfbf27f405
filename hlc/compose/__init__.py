"""State machines over controllers and planned tasks, from a file."""
