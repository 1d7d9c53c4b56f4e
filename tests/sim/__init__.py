"""The simulator itself, and what runs in it: many seeds, faults, and no real time."""
