"""What others do for the same work: one file for each, behind the interface in `contender.py`."""
