"""Alternative methods for comparison with a study's model, with default settings."""
