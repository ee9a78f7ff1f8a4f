"""What several areas use."""
