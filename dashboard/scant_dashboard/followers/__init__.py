"""Shared pages of runs for read-only visitors: one rendering and one event stream for all of them.

A separate process (`draw`) builds the page of a followed run once and renders it again as the run
proceeds; `renderer` starts that process and receives its output. A `channel` stores the current
page and, for each part, the turn of its last change. `handler` sends the page and then the changed
parts as server-sent events; `assets/follow.js` inserts them. A visitor who touches a control gets
a live session, as on any static page.
"""
