"""The areas of the specification, one file or folder for each. `served.py` lists them."""
