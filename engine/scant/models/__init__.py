"""The models: one a file, named as its paper names it."""
