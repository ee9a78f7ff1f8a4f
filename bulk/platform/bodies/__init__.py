"""Bodies of answers: read, decoded, spooled to disk, within a budget of memory."""
