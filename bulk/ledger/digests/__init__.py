"""The digest chain of a run: what `bulk verify` checks. `chain.py` writes it, the others check it.

Nobody who can rewrite the whole directory is kept from rewriting the chain: only a head that was kept elsewhere proves
more than that the parts belong together.
"""
