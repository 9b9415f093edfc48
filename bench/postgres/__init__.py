"""Questions about Postgres."""
