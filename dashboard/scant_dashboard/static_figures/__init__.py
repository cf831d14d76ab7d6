"""Bokeh figures as HTML and SVG, drawn on the server: for pages that need no session and no script.

The same figure objects that a live page holds are read, so that there is one description of each
figure. Marks are an SVG that stretches with the page (lines and marks keep their widths); texts are
HTML, so that they take the page's font and its colors, light or dark.
"""
