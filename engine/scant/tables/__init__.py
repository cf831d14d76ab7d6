"""Users' tables: schema, reading, checks, images. Free of torch."""
