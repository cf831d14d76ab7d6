"""Small data of replicated outputs for tests of their models."""

import torch

from scant.models.replicated.data import Data


def rows(lengths, seed=0, x=None):
    """Rows of outputs with replicas of the given lengths, drawn at random in x (or given x)."""
    g = torch.Generator().manual_seed(seed)
    found = []
    for d, replicas in enumerate(lengths):
        for r, n in enumerate(replicas):
            at = torch.rand(n, generator=g, dtype=torch.float64) * 4 if x is None else x[:n]
            y = torch.sin(at + d) + 0.3 * torch.randn(n, generator=g, dtype=torch.float64)
            found += [(torch.full((n,), d), torch.full((n,), r), at, y)]
    return tuple(torch.cat(column) for column in zip(*found))


def data(lengths, seed=0, x=None):
    names = [[str(r) for r in range(len(replicas))] for replicas in lengths]
    return Data.of(*rows(lengths, seed, x), replicas=names)


def drawn(outputs=8, replicas=4, n=10, seed=0, noise=0.02, shared=1.0, own=0.5):
    """A draw of the model: EQ curves over [0, 4], outputs along a line, samplings shared by all."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    places = torch.linspace(0, 2, outputs, dtype=torch.float64).unsqueeze(1)
    x = torch.rand(replicas, n, generator=g, dtype=torch.float64).sort(1).values * 4
    K_H, K = _eq(places), _eq(x.reshape(-1, 1))
    same = torch.block_diag(*[torch.ones(n, n, dtype=torch.float64)] * replicas)
    f = _root(K_H) @ normal(outputs, replicas * n) @ _root(K * (shared + own * same)).T
    y = f + noise**0.5 * normal(*f.shape)
    d, r, _ = torch.meshgrid(*map(torch.arange, (outputs, replicas, n)), indexing="ij")
    each = x.reshape(-1).repeat(outputs)
    return Data.of(d.reshape(-1), r.reshape(-1), each, y.reshape(-1))


def _eq(x):
    return torch.exp(-0.5 * torch.cdist(x, x).square())


def _root(K):
    return torch.linalg.cholesky(K + 1e-8 * torch.eye(len(K)).to(K))
