"""TypeScript and JavaScript of the user's: what is known of a script without running it on rows."""
