"""Targets for atheris: `make fuzz`."""
