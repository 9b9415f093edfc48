"""Runs scripts on batches: what travels to Spark's Python workers."""
