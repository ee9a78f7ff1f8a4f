"""One request until it is decided: its permit, its retries, its pauses, and where a redirect led."""
