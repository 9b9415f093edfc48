"""SQL results that are kept up to date: each epoch's changes of the inputs become changes of the result."""
