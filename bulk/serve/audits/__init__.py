"""The pages of audits: their nights over time, violations and changes. Blocking, and read only."""
