"""What people agree to before anything is sent: a run as it was checked, a live plan of it, and each wave.

`plan_file.py` is what is agreed to, `planned_run.py` does exactly that, and `gates.py` opens one wave after another.
"""
