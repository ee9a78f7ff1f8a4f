"""Organizations, their repositories, and the teams of an enterprise."""
