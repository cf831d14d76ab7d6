"""What the engine costs on this machine: a step of every model, and of what others offer for it.

    bench("redshift")                       # a step of a study, against the sizes it grows with
    table = measure(devices=["cpu"])        # every model, beside GPyTorch and scikit-learn

`cases` declares what is measured, `builders` makes the models of the engine, `stock` those of
GPyTorch and scikit-learn, `programs` those of the extra `peers`, `timing` has the one loop that
times them, `peers` cites figures of programs that no package index has.
"""

from scant.bench.cases import MODELS
from scant.bench.studies import bench
from scant.bench.table import measure

__all__ = ["MODELS", "bench", "measure"]
