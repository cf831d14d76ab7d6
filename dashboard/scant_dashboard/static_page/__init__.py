"""Study pages without a session: the recorded run as HTML that needs no script.

`markup` converts a page's components to HTML, `figure_models` its figures to what BokehJS draws,
`page` adds the surrounding document, `published` stores one page per study for all visitors.
`pictures` of shipped pages show the figures before BokehJS is there. Controls become live when
touched (`assets/takeover.js`).
"""
