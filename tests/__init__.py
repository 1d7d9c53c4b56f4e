"""Tests in layers: unit, property, scenarios, sim, net, netns."""
