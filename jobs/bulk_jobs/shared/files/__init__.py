"""What operations on files of a repository share."""
