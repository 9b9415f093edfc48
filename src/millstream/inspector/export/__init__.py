"""What a run sends to others by itself: metrics to a collector."""
