"""Spark's logical plans: how they are read, and what of them may run epoch by epoch."""
