"""Optimizers whose state can be saved: L-BFGS step by step, Adam followed by L-BFGS."""
