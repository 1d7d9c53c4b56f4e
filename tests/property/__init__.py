"""What holds for any input: Hypothesis against brute force and invariants."""
