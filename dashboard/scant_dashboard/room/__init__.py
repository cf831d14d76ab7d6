"""A room that answers: phones guess before the presenter reveals, and see where the lesson is."""
