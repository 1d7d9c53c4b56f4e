"""The house rules as functions: each takes a root folder and returns one line per violation."""
