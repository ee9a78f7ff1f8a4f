"""The first contents of a sandbox: the standard data, and the additions of a seed file."""
