"""Rooms: an audience guesses on phones before the presenter reveals an answer."""
