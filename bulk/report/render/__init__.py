"""A report, a plan and a status as text, HTML and tables.

`text.py` and `html.py` (with `chart.py`) show a report, `tables.py` lists its items, `plan_text.py` shows a plan and
`status_text.py` (with `status_words.py`) a run of another process. What reaches a terminal passes through
`terminal.py`; `formatting.py` writes all numbers and times.
"""
