"""Tables outside of a pipeline that it looks rows up in: one module per backend, and one reader with a cache over all of them."""
