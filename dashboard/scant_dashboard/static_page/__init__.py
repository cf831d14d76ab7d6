"""Study pages without a session: the recorded run as HTML that needs no script.

`markup` turns what a page is built from into HTML, `page` puts it in a frame, `published` keeps one
page a study for all visitors. What a visitor touches becomes live (`assets/takeover.js`).
"""
