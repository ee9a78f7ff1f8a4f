"""Writes what the system's scheduler needs to run an audit; runs nothing itself.

`times.py` reads cron expressions, `emitting.py` chooses the form, and each form has a file of its own.
"""
