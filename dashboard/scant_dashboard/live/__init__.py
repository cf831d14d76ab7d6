"""Live runs: one state a run in the server, fanned out to every session that shows it."""
