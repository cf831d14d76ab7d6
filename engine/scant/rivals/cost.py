"""What the rivals of a fit take, for an estimate before it is begun; plain arithmetic."""

from __future__ import annotations

SECONDS = 20.0  # for which rivals are begun, if the run itself took less
FOREST_ROWS = 5_000  # rows that a tree is grown on: more only make it slow
CROSS_ROWS = 10_000  # up to which residuals are cross-validated; of more, those of a fifth
MOST_ROWS = 200_000  # that rivals learn from
GP_ROWS = 2_000  # of an exact GP
GPC_COST = 500_000  # rows squared times classes of a GP by Laplace's approximation
# Of rivals that learn from copies with gaps (`knocked_out`):
COPIES = 4  # of each row; fewer of many rows
COPIED_ROWS = 40_000  # rows and copies, about
TREE_ROWS = 10_000  # of these, that a tree is grown on


def seconds(rows: int, columns: int, classes: int, fit: float) -> float:
    """Seconds that scikit-learn's rivals take on one core, good to a factor of two.

    Measured, one thread: of values 1.8 s for 200 rows of 5 columns, 6.4 s for 2,000, 12.6 s for
    2,000 rows of 30 columns, 12.5 s for 10,000 of 10, 36 s for 100,000 of 20; of 2
    classes 2.0 s for 2,000 rows of 10 columns, of 10 classes 7.0 s. Packages of the extra `rivals`
    come on top.

    Args:
        rows: Of the table.
        columns: Of the table.
        classes: To tell apart; 0: values.
        fit: Seconds of the fit itself, for which rivals are begun if that is more than `SECONDS`.
    """
    learned = min(rows, MOST_ROWS)
    grown = min(rows, FOREST_ROWS) * columns
    if classes:
        trees = 100 * (classes if classes > 2 else 1)
        forest = 0.2 + 5e-5 * grown + 1e-4 * rows
        boosting = trees * (0.002 + 8e-5 * columns + 5e-7 * learned)
        process = 1.0 * (rows**2 * max(1, classes - 1) <= GPC_COST)
    else:
        forest = 0.1 + 1.4e-4 * grown + 1e-4 * rows
        crossed = min(learned, CROSS_ROWS)  # more are not cross-validated
        boosting = 0.3 + min(1.1e-3 * crossed, 2.2) + 2e-5 * crossed * columns
        boosting = max(boosting * (learned <= CROSS_ROWS), 4e-6 * learned * columns)
        process = (1.0 + 2.5e-7 * rows**2) * (rows <= GP_ROWS)
    slowest = max(forest, boosting, process)  # the last one that is begun is fitted to its end
    return min(forest + boosting + process, max(fit, SECONDS) + slowest)


def beside(rows: int, columns: int, catboost: bool) -> float:
    """Seconds that the rivals that know gaps (`knocked_out`) take on one core, by a factor of two.

    Measured, one thread of a busy machine, ten columns, 500, 2,000, 8,000 and 20,000 rows: forests
    0.9, 4.6, 10, 20 s; boosting 1.6, 2.4, 5.8, 4.6 s; CatBoost 1.5, 5.3, 16, 22 s. 30 columns of
    2,000 rows: 12, 5.2 and 8.5 s.

    Args:
        rows: That they learn from.
        columns: Inputs.
        catboost: Whether it is installed.
    """
    copied = min((COPIES + 1) * rows, COPIED_ROWS)
    forest = 0.2 + (6e-5 * rows + 3e-5 * min(copied, TREE_ROWS)) * columns
    boosting = 0.4 + 1e-3 * min(rows, 1000) + 1e-5 * copied * columns
    return forest + boosting + catboost * (0.5 + 4e-5 * (rows + copied) * columns)
