"""How many requests may be in flight: found by experiments, bounded by this process's own load."""
