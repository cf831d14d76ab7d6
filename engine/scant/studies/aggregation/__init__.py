"""Aggregation: MTGPA on averages over boxes (fertility, PM2.5, counts)."""
