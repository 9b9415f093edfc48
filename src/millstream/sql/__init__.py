"""SQL: what a check says without Spark, rewrites of Spark's plan, and decisions on it."""
