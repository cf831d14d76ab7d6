"""The redshift page."""
