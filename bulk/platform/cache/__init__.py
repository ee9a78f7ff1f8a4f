"""Cached answers of reads. A read whose answer has not changed (304) costs no budget."""
