"""Laplace's approximation for binary GP classification, and active learning with it."""
