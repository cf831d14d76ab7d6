"""One file per page: layout and texts, no mathematics. Each has `views(page) -> PageViews`."""
