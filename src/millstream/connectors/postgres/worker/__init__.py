"""What the Postgres sinks run on Spark's Python workers; it follows the rule of `millstream.worker`."""
