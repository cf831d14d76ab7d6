"""Formats of files that hold tables: how each is recognized, read and written."""
