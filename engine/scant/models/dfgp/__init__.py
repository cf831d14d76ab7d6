"""DFGP, the deep feed-forward GP (Kandemir and Hamprecht 2015)."""
