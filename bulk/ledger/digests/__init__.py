"""The digest chain of a run: what `bulk verify` checks. `chain.py` writes it, the others check it.

Someone who can rewrite the whole directory can rewrite the chain, too: by itself the chain proves only that the parts
belong together. A head that was kept elsewhere proves more.
"""
