"""Limits on what one client can make the server do or hold."""
