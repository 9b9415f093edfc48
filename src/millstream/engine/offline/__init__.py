"""A pipeline that is not running: its checkpoint, its state, and what a run would do."""
