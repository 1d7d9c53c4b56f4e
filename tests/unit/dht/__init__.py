"""The distributed hash table, part by part."""
