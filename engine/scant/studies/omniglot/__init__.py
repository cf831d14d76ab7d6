"""Omniglot: many outputs, many classes, few examples (Ma 2023, ch. 3 and 4)."""
