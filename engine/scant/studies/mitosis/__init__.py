"""Mitosis: a rare class with private latent dimensions (Yousefi 2021, ch. 3)."""
