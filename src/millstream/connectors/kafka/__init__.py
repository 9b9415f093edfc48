"""Kafka: events in and out."""
