"""The simulator's parts, one by one."""
