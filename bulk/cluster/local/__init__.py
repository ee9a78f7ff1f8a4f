"""A run of several workers on this machine alone, with a PostgreSQL of its own."""
