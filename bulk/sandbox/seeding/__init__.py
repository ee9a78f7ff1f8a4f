"""What a sandbox begins with: the standard data, and what a seed file adds."""
