"""What the documentation says about the code, made from the code.

`mkdocs.yml` names `docs/hooks.py`, which puts these pages into the site: settings with their units
and reasons, every command, and each protocol's specification, which is its package's docstring.
Messages have a page of their own in the repository (`nodes.wire_reference`).
"""
