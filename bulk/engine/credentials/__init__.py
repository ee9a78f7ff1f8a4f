"""Finds accounts, payers and identities of the credentials before anything is sent, and what the credentials may do."""
