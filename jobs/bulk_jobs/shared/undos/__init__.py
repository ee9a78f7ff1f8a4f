"""How changes of settings are taken back, and several changes of the same settings at once."""
