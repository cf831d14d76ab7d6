"""Data sets of every study, as its catalog entry describes them."""

from __future__ import annotations

import pytest

from scant.data_sources.fetch import DOWNLOADS
from scant.data_sources.open import sample
from scant.studies import STUDIES, entry
from scant.studies.base import ArraySpec, Source, array_specs
from scant.tables.read import read_frame
from scant.tables.schema import counts

MOST_ROWS = 3000  # drawn whole
GENERATED = [
    pytest.param(study, source, id=f"{study}, {source.name}")
    for study in STUDIES
    for source in entry(study).sources
    if source.kind == "generated" and study != "clamp"  # whose photographs take minutes
]


@pytest.mark.slow("engine/scant/studies")
@pytest.mark.parametrize(("study", "source"), GENERATED)
def test_a_seed_is_a_table(study: str, source: Source) -> None:
    spec = entry(study)
    one, again, other = (sample(spec, source.name, 40, seed) for seed in (3, 3, 4))
    assert len(one) <= 40
    assert one.equals(again)
    assert not one.equals(other)


@pytest.mark.slow("engine/scant/studies")
@pytest.mark.parametrize(("study", "source"), GENERATED)
def test_a_whole_table_is_that_of_the_catalog(study: str, source: Source) -> None:
    spec = entry(study)
    size = source.rows_and_columns(spec.settings())
    if size is None or size[0] > MOST_ROWS:
        pytest.skip("of a size that is not known, or takes long to draw")
    frame = sample(spec, source.name, 10**6)
    assert frame.shape == size
    assert read_frame(frame, spec.table).notes == ()
    told = counts(frame, spec.table)
    assert all(told[column] == each for column, each in source.counts.items())


def test_every_fetched_source_can_be_fetched() -> None:
    fetched = {s.name for study in STUDIES for s in entry(study).sources if s.kind == "fetched"}
    assert {"sdss", "drosophila", "omniglot"} < fetched <= set(DOWNLOADS)
    for name in fetched:
        assert all(file.url.startswith("https://") for file in DOWNLOADS[name].files)


def test_a_line_is_a_spec_and_indented_lines_go_on() -> None:
    specs = array_specs("""
        mean (n q) [1/y] posterior means,
            of some rows
        pit (n) [probability] of the values
    """)
    assert specs == (
        ArraySpec("mean", "n q", "1/y", "posterior means, of some rows"),
        ArraySpec("pit", "n", "probability", "of the values"),
    )


@pytest.mark.parametrize("line", ["mean n q [1] means", "mean (n q) means", "mean (n q) [1]"])
def test_a_line_of_another_form_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="spec of an array"):
        array_specs(line)
