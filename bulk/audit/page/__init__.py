"""The audit page: one HTML file that opens from disk and asks nobody for anything. `page.py` renders the template."""
