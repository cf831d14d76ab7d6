"""Where a study's table comes from: generators, downloads, files, public databases."""
