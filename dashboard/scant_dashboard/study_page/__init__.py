"""The page of a study put together: its session, its layout, the room that it asks."""
