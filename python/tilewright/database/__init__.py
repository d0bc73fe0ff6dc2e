"""Records of measurements: reading, writing, merging and repairing databases of them."""
