"""Reading: what a table looks like, its rows by key and by cursor, and its changes out of a replication slot."""
