"""Kernels averaged over boxes, points and weighted sets (Yousefi 2021, appendix C)."""
