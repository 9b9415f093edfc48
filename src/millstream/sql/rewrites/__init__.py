"""Rewrites of a query's text before Spark reads it."""
