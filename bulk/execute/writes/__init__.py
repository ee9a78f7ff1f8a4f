"""Writes of this run that others have to know of: recent ones, what they created, and those that may still arrive."""
