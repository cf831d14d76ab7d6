"""The server's routes, response headers, health and readiness."""
