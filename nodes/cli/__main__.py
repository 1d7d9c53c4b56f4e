"""`python -m nodes.cli` is `overlay`, wherever its script is installed."""

from nodes.cli.main import main

main()
