"""Tables outside of a pipeline that it looks rows up in: what a table is, its cache, its readers, and one backend per system."""
