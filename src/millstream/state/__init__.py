"""What outlives a run outside of Spark: the state backend for metadata and plugins, and the stores of dynamic tables."""
