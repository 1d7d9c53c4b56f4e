"""What people run and hold: recipes that assemble protocols, the trio API, and the CLI."""
