"""SQL: what a check says without Spark, rewrites of the text, and decisions on Spark's analysed plan."""
