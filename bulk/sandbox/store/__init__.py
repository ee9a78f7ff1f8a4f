"""The state of a sandbox: one SQLite file, and the records above it."""
