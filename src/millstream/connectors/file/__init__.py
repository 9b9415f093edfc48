"""Files: read as a stream, written exactly once per epoch, and read back without what is not committed."""
