"""One plot per file. Each is a small class over raw Bokeh figures: `show(...)` takes plain arrays.

Raw Bokeh, because it streams twelve times faster than HoloViews. `base.DataView` turns a plot into
a view of a page (`scant_dashboard.page_parts.views`).
"""
