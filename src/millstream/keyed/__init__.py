"""Keyed state on Spark's `transformWithState`: keys, the operator over buckets of keys, and a reader for its state."""
