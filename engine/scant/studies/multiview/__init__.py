"""Rows seen in many views: cell events, pollution, survival (Kandemir and Hamprecht 2015)."""
