"""Reproduction of the tables of publications by `scant reproduce`."""
