"""`run.plot()` and `scant.plot(run)`: a study's figures as HoloViews elements, for notebooks."""
