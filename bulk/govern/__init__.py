"""When may a request leave: budgets, pacing, pauses, concurrency and credentials, one permit at a time.

Reading order: buckets (the arithmetic), pacing, platform_time, rounds and suffering (what answers say of the platform),
concurrency, pulse (how busy this process is), accounts (a credential and its buckets), governor.
"""
