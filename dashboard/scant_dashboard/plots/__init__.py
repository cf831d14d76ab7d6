"""One plot a file. Each is a small class over raw Bokeh figures: `show(...)` takes plain arrays.

Raw Bokeh because it streams twelve times cheaper than HoloViews. `base.Fed` turns a plot into a
view of a page (`scant_dashboard.page_parts.views`) by saying which arrays of a snapshot or report
it is fed.
"""
