"""Traces: one schema for both drivers, the recorder, and what reads them."""
