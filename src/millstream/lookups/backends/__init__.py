"""One module per system that keeps tables. Each has a class `Table` with the methods of `lookups.table.Store`."""
