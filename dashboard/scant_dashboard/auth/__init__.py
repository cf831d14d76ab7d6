"""Visitors, logins, origins and proxies: identification and permissions of requests."""
