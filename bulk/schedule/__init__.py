"""Decides which item is next, by lanes, queues, priorities and the progress of jobs. It never waits."""
