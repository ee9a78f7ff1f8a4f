"""What everything that writes to disk shares: private files, threads for blocking work, inserts of many rows; and
processes of our own beside this one."""
