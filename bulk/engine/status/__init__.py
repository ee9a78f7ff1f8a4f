"""The status of a run, for all who look at it: `snapshot.py` puts it together."""
