"""Files become rows."""
