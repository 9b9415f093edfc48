"""Named values that are kept beside a pipeline, in SQLite or in Postgres."""
