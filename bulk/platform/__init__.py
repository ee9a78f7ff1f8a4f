"""The platform as the engine meets it: the one place where requests leave, and what is known about answers.

Reading order: wire with bodies and links (what an answer means: pure), transport (one request, one answer or failure),
credentials and secrets (tokens), validators (what did not change costs nothing).
"""
