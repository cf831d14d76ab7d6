"""Generators of the multiview study's demonstration data."""
