"""Code that operations on files of a repository share."""
