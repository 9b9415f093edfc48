"""Event time while a query runs: watermarks and late rows."""
