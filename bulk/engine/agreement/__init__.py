"""The agreement of people before anything is sent: to a run as it was checked, to a live plan of it, and to each wave.

`plan_file.py` is what is agreed to, `planned_run.py` does exactly that, and `gates.py` opens one wave after another.
"""
