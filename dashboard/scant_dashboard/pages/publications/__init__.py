"""The page of the publications: each of their tables and figures, and what became of it here."""
