"""MTGPA, multi-task GPs on aggregated data (Yousefi 2021, ch. 5)."""
