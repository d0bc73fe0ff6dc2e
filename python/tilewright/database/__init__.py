"""Databases of measurement records: reading, writing, merging and repairing them."""
