"""What travels to Spark's Python workers. It is pickled by value, and imports only itself and `errors`: workers need no Millstream."""
