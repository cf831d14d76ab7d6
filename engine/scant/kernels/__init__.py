"""Covariance functions that GPyTorch lacks, one per file."""
