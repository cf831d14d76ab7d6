"""Genes: outputs measured in replicas (Ma 2023, ch. 5)."""
