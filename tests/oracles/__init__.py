"""Digests of what the compiler computes: a change of its structure alone leaves each of them as it is."""
