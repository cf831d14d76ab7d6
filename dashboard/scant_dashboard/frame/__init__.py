"""The frame around every page: session, error page, and the services that pages share."""
