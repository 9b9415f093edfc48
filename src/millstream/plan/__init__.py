"""What to do: frozen nodes, the graph they form, their schemas and the checks on them. Knows nothing of Spark."""
