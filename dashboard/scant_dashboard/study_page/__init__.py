"""The page of a study: its session, its layout, and its connection to a room."""
