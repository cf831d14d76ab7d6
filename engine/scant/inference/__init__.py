"""Expectations under Gaussian inputs, and numerical warnings of Cholesky factors."""
