"""Bokeh figures as HTML and SVG, rendered on the server for pages without session and script.

The figure objects of the live page are read, so that each figure is described only once. Marks are
an SVG that stretches with the page (lines and markers keep their widths); texts are HTML, which
takes the page's font and colors, light or dark.
"""
