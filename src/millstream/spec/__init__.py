"""The YAML front door: text with positions → models → the plan. Every problem keeps its line and column."""
