"""MOGPs-AR, multi-output GPs with augment-and-reduce (Ma 2023, ch. 3 and 4)."""
