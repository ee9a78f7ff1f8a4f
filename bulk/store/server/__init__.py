"""A PostgreSQL of one's own, without an installation: its programs, one server, and a server that several share."""
