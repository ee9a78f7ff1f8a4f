"""Policies: SELECTs that return what is not as it should be.

`policy.py` reads their files, `waivers.py` the exceptions that end, `judging.py` runs them over tables and compares
with the night before, `output.py` shows the results.
"""
