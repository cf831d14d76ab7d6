"""Patches of Bokeh, Panel and Tornado, one a module, each with its reason."""
