"""A checked manifest on disk: what the check found, the index of its lanes, and its items, read again one by one."""
