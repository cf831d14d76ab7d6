"""The frame that every study's page fills: layout, figures, lessons, widgets."""
