"""Facts about a run as plain data: what the engine records, and what terminals, tests and web pages show."""
