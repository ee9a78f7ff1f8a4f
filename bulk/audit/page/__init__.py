"""The audit page: one HTML file that opens from disk and needs no network. `page.py` renders the template."""
