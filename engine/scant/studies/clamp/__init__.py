"""Clamps: active learning with GP classification (Yousefi 2021, ch. 4)."""
