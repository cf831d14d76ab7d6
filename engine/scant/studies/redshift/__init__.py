"""Redshift: GPz on photometry with missing bands (Almosallam 2017)."""
