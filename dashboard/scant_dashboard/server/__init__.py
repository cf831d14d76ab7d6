"""Handlers of pages and websockets, response headers, prefix, and work beside the server."""
