"""Expectations under Gaussians, exact GP algebra, quadrature, censoring and stacking."""
