"""Apps: who they are, where they are installed, the tokens that they mint, and users who let them act."""
