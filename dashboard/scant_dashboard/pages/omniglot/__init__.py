"""The omniglot page."""
