"""The frame around every page: session, template, error page."""
