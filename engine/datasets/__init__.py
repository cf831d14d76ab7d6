"""Data sets: generators of the demonstrations, downloads of real data, reading of users' tables."""
