"""Covariance functions that GPyTorch lacks, a file each."""
