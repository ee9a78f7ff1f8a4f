"""Which item is next: lanes, queues, priorities and the progress of jobs. It decides and never waits."""
