"""Which jobs need which, as a whole or item by item, and which of them are read."""
