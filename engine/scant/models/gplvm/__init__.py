"""Bayesian, shared-private and discriminative GP latent variable models (Yousefi 2021, ch. 3)."""
