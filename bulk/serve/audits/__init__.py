"""The pages of audits: their nights over time, what is violated and what changed. Blocking, and read only."""
