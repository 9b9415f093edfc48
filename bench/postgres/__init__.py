"""Questions about Postgres: writing, looking up."""
