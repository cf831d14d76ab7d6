"""Generators of the aggregation study's demonstration data."""
