"""What pages of studies are made of: views, widgets, questions, and the protocol of a page."""
