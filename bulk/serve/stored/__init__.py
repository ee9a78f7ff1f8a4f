"""Runs in a store and the workers of the store, as the page shows them. Blocking."""
