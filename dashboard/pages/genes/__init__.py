"""The genes page."""
