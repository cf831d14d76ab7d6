"""Live runs: one state per run in the server, shared by all sessions that show it."""
