"""Spark's analysed plan: how it is read, and what of it may run on the rows of one epoch."""
