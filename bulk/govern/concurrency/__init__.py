"""Finds by experiments how many requests may be in flight; this process's own load bounds it."""
