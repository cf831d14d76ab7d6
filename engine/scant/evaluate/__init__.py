"""Scores of predictive distributions: one problem, many methods, one report and one verdict."""
