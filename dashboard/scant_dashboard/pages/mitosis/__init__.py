"""The mitosis page."""
