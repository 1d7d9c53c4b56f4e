"""The command `overlay`: one module for each group of commands."""
