"""Makes typed tables of results, judges them by policies, and repeats both night after night: an audit.

Reading order: `tables/` turns results into tables and answers SQL, `policies/` judges them, `comparison/` says what has
changed since each item was last read, `history.py` is the folder of an audit, `audit.py` is one night from beginning to
end, `notify/` tells people, and `schedules/` writes what the system's scheduler needs.
"""
