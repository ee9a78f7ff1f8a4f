"""From files to typed items: how items are read, line by line, and what is wrong with those that can't be."""
