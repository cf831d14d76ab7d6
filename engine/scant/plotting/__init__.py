"""Figures as HoloViews elements, for notebooks: what `run.plot()` and `scant.plot(run)` show."""
