"""What several operations share."""
