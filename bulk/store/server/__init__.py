"""A private PostgreSQL without an installation: its programs, one server, and a server that several processes share."""
