"""The manifest against itself: every item is read once, before anything is sent, and the plan is made."""
