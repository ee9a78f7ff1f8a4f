"""The status of a run, for all who look at it: `snapshot.py` puts it together.

`unfinished.py` says what it means for a command when its run has work left.
"""
