"""What a run does about its credentials before anything else: accounts, payers, identities; and what they may do."""
