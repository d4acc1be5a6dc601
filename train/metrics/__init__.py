"""A run's metrics: rows of figures, the files that hold them, tables and pictures of them."""
