"""Needs of jobs, as a whole or item by item, and the choice of the jobs that are read."""
