"""The web application: pages, plots and controls of runs, without numerics and torch."""
