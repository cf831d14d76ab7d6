"""Handlers of pages and websockets, response headers, prefix, and work in separate processes."""
