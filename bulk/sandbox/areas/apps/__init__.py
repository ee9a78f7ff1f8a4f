"""Apps: their installations, the tokens that they mint, and the users who let them act."""
