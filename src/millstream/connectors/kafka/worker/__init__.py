"""What the Kafka sink runs on Spark's Python workers; it follows the rule of `millstream.worker`."""
