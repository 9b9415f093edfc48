"""Figures about Kafka, each against Spark's own connector."""
