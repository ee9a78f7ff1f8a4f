"""The status of a run, for all who look at it: `snapshot.py` puts it together, and `unfinished.py` says what one with work left means."""
