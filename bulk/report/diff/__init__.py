"""Finds how two runs of the same audit differ.

`comparison.py` matches their items, `field_changes.py` compares two values, `diff_record.py` is the record of the
differences, and `diff_text.py` shows it as text.
"""
