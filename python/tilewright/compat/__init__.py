"""Other projects' names for what Tilewright has."""
