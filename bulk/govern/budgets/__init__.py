"""Budgets: what each witness says of a bucket, what is left, and how fast it is spent. Pure."""
