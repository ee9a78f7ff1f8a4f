"""Commands about results as tables, and about audits."""
