"""Needs of jobs, as a whole or item by item, the choice of the jobs that are read, and how waves go through needs."""
