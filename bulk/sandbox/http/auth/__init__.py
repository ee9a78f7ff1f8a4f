"""Who is calling: tokens, passwords, and what Apps show of themselves."""
