"""Tells people about a night, at most once each: `message.py` decides what and whom, `sending.py` does it."""
