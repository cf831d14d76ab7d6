"""The web house: pages, plots and controls around runs. It imports no mathematics and no torch."""
