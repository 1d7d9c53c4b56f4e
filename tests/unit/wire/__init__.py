"""Tests of frames, batches and datagrams."""
