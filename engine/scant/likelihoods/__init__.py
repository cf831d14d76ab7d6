"""Likelihoods that GPyTorch lacks: augment and reduce for a softmax over many classes."""
