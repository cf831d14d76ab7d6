"""Pages of runs for those who only follow them: no session, one drawing and one stream for all.

A process of its own (`draw`) builds the page of a followed run once and looks at it again as the
run goes on; `renderer` starts it and hears it. What it draws is kept in a `channel`: the page as
it stands, and of each part when it changed last. `handler` sends the page, then the parts that
changed, as server-sent events; `assets/follow.js` puts them in their places. Who touches a control
gets a page of their own, as on any static page.
"""
