"""One file a page: layout and words, no mathematics. Each has `views(page) -> PageViews`."""
