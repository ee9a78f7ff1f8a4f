"""A bundle is a checked manifest on disk, from which items are read again one by one.

The check writes it: `checked.py` has what the check found, `index.py` knows which items share a lane, and
`duplicate_reads.py` which reads ask for the same. The run reads it: `streams.py` gives items in their order and by
lane, `reread.py` gives each item at its place. `item_files.py` reads files that items name, `conversion.py` has large
files converted by another process, `conversion_child.py`; `secret_fields.py` reads secrets, and `item_secrets.py` keeps
them out of copies of items.
"""
