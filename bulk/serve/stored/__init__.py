"""Runs in a store that several machines work on, as the page shows them, and those machines. Blocking."""
