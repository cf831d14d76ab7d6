"""Benchmarks of training steps of the models, compared with other packages.

    bench("redshift")                       # step time of a study by size
    table = measure(devices=["cpu"])        # all models, with GPyTorch and scikit-learn

`cases` declares the benchmarks, `builders` builds models of the engine, `stock` those of GPyTorch
and scikit-learn, `programs` those of the extra `peers`, `timing` measures times, and `peers` has
times of programs that are in no package index.
"""

from scant.bench.cases import MODELS
from scant.bench.studies import bench
from scant.bench.table import measure

__all__ = ["MODELS", "bench", "measure"]
