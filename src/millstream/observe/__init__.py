"""Facts about a run as plain data: the engine records them; terminals, tests and web pages show them."""
