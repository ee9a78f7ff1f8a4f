"""Policies: SELECTs that return what is not as it should be.

`policy.py` reads their files, `waivers.py` the exceptions that end, `judging.py` runs them over tables and compares
with the night before, `out_of_sight.py` tells what is fixed from what can't be seen, `output.py` shows the results.
"""
