"""The catalog of operations: what `bulk operations` shows, made from the operations themselves."""
