"""From files to typed items: reads items, line by line, and explains the flaws of those that can't be read."""
