"""Estimates of the time that other methods take."""

from __future__ import annotations

SECONDS = 20.0  # minimum time budget for other methods
FOREST_ROWS = 5_000  # maximum rows of a tree; more are slower without gain
CROSS_ROWS = 10_000  # maximum rows for cross-validated residuals; else one split is used
MOST_ROWS = 200_000  # maximum training rows of other methods
GP_ROWS = 2_000  # maximum training rows of an exact GP
GPC_COST = 500_000  # maximum of rows squared times classes for a GP classifier
ROUNDS = 30  # without improvement on the validation split before boosting stops
# For methods fitted to copies with missing values (`knocked_out`):
COPIES = 4  # per row; fewer for many rows
COPIED_ROWS = 40_000  # approximate number of rows and copies
TREE_ROWS = 10_000  # maximum rows of a tree


def seconds(rows: int, columns: int, classes: int, fit: float) -> float:
    """Estimate the seconds of the methods of scikit-learn on one core within a factor of two.

    Measured with one thread for regression: 1.8 s for 200 rows of 5 columns, 6.4 s for 2,000 rows,
    12.6 s for 2,000 rows of 30 columns, 12.5 s for 10,000 rows of 10, 36 s for 100,000 rows of 20;
    for 2,000 rows of 10 columns 2.0 s with 2 classes, 7.0 s with 10. Packages of the extra `rivals`
    are not included.

    Args:
        rows: Number of rows of the table.
        columns: Number of columns of the table.
        classes: Number of classes; 0 for regression.
        fit: Seconds of the fit, which is the time budget if it is more than `SECONDS`.
    """
    train_rows = min(rows, MOST_ROWS)
    if classes:
        trees = 100 * (classes if classes > 2 else 1)
        boosting = trees * (0.002 + 8e-5 * columns + 5e-7 * train_rows)
        process = 1.0 * (rows**2 * max(1, classes - 1) <= GPC_COST)
    else:
        crossed = min(train_rows, CROSS_ROWS)  # rows that are cross-validated
        boosting = 0.3 + min(1.1e-3 * crossed, 2.2) + 2e-5 * crossed * columns
        boosting = max(boosting * (train_rows <= CROSS_ROWS), 4e-6 * train_rows * columns)
        process = (1.0 + 2.5e-7 * rows**2) * (rows <= GP_ROWS)
    forest = forest_seconds(rows, columns, classes)
    slowest = max(forest, boosting, process)  # the last method may exceed the budget
    return min(forest + boosting + process, max(fit, SECONDS) + slowest)


def forest_seconds(rows: int, columns: int, classes: int) -> float:
    """Estimate the seconds of a random forest on one core (arguments: see `seconds`)."""
    tree_cells = min(rows, FOREST_ROWS) * columns
    return (0.2 + 5e-5 * tree_cells if classes else 0.1 + 1.4e-4 * tree_cells) + 1e-4 * rows


def beside(rows: int, columns: int, catboost: bool) -> float:
    """Estimate the seconds of methods for missing values (`knocked_out`) within a factor of two.

    Measured with one thread of a busy machine for ten columns and 500, 2,000, 8,000 and 20,000
    rows: forests 0.9, 4.6, 10, 20 s; boosting 1.6, 2.4, 5.8, 4.6 s; CatBoost 1.5, 5.3, 16, 22 s;
    for 30 columns and 2,000 rows 12, 5.2 and 8.5 s.

    Args:
        rows: Number of training rows.
        columns: Number of inputs.
        catboost: True if CatBoost is installed.
    """
    copied = min((COPIES + 1) * rows, COPIED_ROWS)
    forest = 0.2 + (6e-5 * rows + 3e-5 * min(copied, TREE_ROWS)) * columns
    boosting = 0.4 + 1e-3 * min(rows, 1000) + 1e-5 * copied * columns
    return forest + boosting + catboost * (0.5 + 4e-5 * (rows + copied) * columns)
