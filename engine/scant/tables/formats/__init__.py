"""Detection, reading and writing of file formats for tables."""
