"""The page of the publications: each of their tables and figures with its status here."""
