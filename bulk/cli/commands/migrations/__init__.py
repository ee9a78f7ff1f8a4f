"""Commands about a migration: agree to it, take it back, prove it."""
