"""Spark's own SQL plans, reached through py4j."""
