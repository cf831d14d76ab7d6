"""The clamp page."""
