"""Where tables come from: downloads, packaged files, public databases, a cache."""
