"""The aggregation page."""
