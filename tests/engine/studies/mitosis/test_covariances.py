"""What of the covariances tells rows apart, and the order that rows stand in."""

from __future__ import annotations

import numpy as np

from scant.studies.mitosis.covariances import apart, ordered


def test_what_rows_have_in_common_is_left_out_of_covariances() -> None:
    rng = np.random.default_rng(0)
    label = np.array([0] * 4 + [1] * 5)
    same = label[:, None] == label[None]
    # Samples of f = constant + shared wave + private wave: their covariances about their means.
    f_shared, f_private = rng.normal(size=(2, 9, 400))
    f_private[same[:, 0]] += 7 * rng.normal(size=400)
    shared = f_shared @ f_shared.T / 400 + 50.0
    private = np.where(same, f_private @ f_private.T / 400, 0.0)
    left = apart(np.stack([shared, private, shared + private]), label, parts=True)
    inner = f_shared - f_shared.mean(0)
    np.testing.assert_allclose(left[0], inner @ inner.T / 400, atol=1e-9)
    own = [f_private[label == c] - f_private[label == c].mean(0) for c in (0, 1)]
    np.testing.assert_allclose(left[1][:4, :4], own[0] @ own[0].T / 400, atol=1e-9)
    np.testing.assert_allclose(left[1][~same], 0, atol=1e-9)
    np.testing.assert_allclose(left[2], left[0] + left[1])
    whole = apart(np.stack([shared] * 3), label, parts=False)
    np.testing.assert_allclose(whole[2], left[0])


def test_rows_stand_class_by_class_along_what_varies_most() -> None:
    label = np.array([0, 0, 0, 1, 1, 1])
    along = np.array([2.0, -1.0, -1.5, 0.0, 9.0, -3.0])
    order = ordered(np.outer(along, along) + 0.01 * np.eye(6), label)
    assert order.tolist() == [2, 1, 0, 5, 3, 4]
    assert ordered(np.outer(-along, -along), label).tolist()[3:] == [5, 3, 4]
