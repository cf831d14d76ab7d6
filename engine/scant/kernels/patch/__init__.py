"""Weighted convolutional kernels over image patches (Ma 2023, section 4.2)."""
