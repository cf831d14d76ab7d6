"""Sources of tables: generators, downloads, files, public databases."""
