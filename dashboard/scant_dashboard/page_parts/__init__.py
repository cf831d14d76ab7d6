"""Building blocks of study pages: views, widgets, questions, and the protocol of a page."""
