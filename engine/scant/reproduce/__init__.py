"""`scant reproduce`: the publications' tables, our results beside theirs."""
