"""Rivals: what a professional would take in place of a study's model, tuned by its defaults."""
