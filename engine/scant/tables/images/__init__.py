"""Reading of ZIP archives of images as tables, and features of images."""
