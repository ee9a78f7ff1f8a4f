"""A manifest is checked against itself before anything is sent: every item is read once, and the plan is made.

`checking.py` reads and checks all items. On the way `conflicts.py` looks for items that contradict each other,
`saved_names.py` for two that would be saved to one file, and `request_savings.py` counts what need not be sent.
`plan.py` says what the run costs, and `plan_forecast.py` when it would end. `derived_items.py` does the same as
`checking.py` for items that are made while the run goes on.
"""
