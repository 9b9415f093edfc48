"""Messages become rows."""
