"""A report, a plan and a status as text, HTML and tables."""
