"""Mitosis: a rare class in a latent space of its own (Yousefi 2021, ch. 3)."""
