"""Expectations under Gaussians, exact GP algebra, quadrature and censoring."""
