"""The training loop, its control, and `scant.fit` and `scant.load`."""
