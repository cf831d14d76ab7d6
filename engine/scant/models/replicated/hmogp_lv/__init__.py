"""HMOGP-LV and LVMOGP: hierarchical multi-output GPs with latent variables (Ma 2023, 5.2)."""
