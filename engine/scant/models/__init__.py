"""GP models, one module or package each, named as in their publications."""
