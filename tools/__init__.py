"""What `make` runs: small programs about the project itself, none of which is installed."""
