"""Likelihoods that GPyTorch lacks: augment-and-reduce softmax, censored Gaussian, probit."""
