"""Study pages without a session: the recorded run as HTML that needs no script.

`markup` converts a page's components to HTML, `page` adds the surrounding document, `published`
stores one page per study for all visitors. Controls become live when touched
(`assets/takeover.js`).
"""
