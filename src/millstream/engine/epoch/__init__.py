"""One epoch: frames, staging, commits, and the checks before an epoch is repeated."""
