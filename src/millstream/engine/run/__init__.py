"""One run of a plan: queries are started, watched, restarted and stopped."""
