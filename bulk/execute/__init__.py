"""From items to outcomes: what is offered when, who works on it, and what became of a lost answer.

Reading order: scheduler (which item next) with lanes and streams, workers (the loop), drive (one item's life),
exchange (one request with its retries), settle (what happened to a lost answer), recorder (the way to disk).
"""
