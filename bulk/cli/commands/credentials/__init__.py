"""Commands about credentials: what they may do, and how a user lets an App act for him."""
