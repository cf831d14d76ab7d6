"""The page of many views."""
