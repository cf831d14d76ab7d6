"""The first lesson: a Gaussian process in one dimension, computed in the visitor's browser."""
