"""Parquet, Feather and JSON lines formats with PyArrow."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather, json, parquet

from scant.errors import BadInput
from scant.tables.encoding import LIMIT_BYTES
from scant.tables.formats import geoparquet
from scant.tables.formats.registry import (
    Content,
    Format,
    Opener,
    Rows,
    Style,
    check_size,
)

GROUP_ROWS = 200_000  # minimum rows of a Parquet row group; small groups are slow to read
BLOCK = 1 << 23  # bytes of JSON lines parsed at once
_LINES = "JSON lines (one object per line)"
_OBJECT = re.compile(rb"\s*\{\s*\"")


def _read_parquet(data: bytes, file: str, part: str) -> Content:
    try:
        opened = parquet.ParquetFile(pa.BufferReader(data))
        geo = geoparquet.described(opened.schema_arrow)
        _check(geoparquet.plain(opened.schema_arrow, geo), opened.metadata.num_rows, file)
        if geo is not None:
            return Content(geoparquet.frame(opened.read(use_threads=False), geo, file))
        text_columns = [f.name for f in opened.schema_arrow if _is_text(f.type)]
        # Dictionaries keep a repeated long word in memory only once.
        opened = parquet.ParquetFile(pa.BufferReader(data), read_dictionary=text_columns)
        return _frame(opened.read(use_threads=False), file)
    except BadInput:
        raise
    except Exception as error:  # Arrow raises many kinds
        raise _damaged(file, "Parquet", error) from error


def _read_feather(data: bytes, file: str, part: str) -> Content:
    try:
        if data.startswith(b"ARROW1"):
            with pa.ipc.open_file(pa.BufferReader(data)) as opened:
                rows = sum(opened.get_batch(i).num_rows for i in range(opened.num_record_batches))
                _check(opened.schema, rows, file)
                return _frame(opened.read_all(), file)
        table = feather.read_table(pa.BufferReader(data), use_threads=False)
        _check(table.schema, table.num_rows, file)
        return _frame(table, file)
    except BadInput:
        raise
    except Exception as error:
        raise _damaged(file, "Feather", error) from error


def _read_lines(data: bytes, file: str, part: str) -> Content:
    try:
        block = min(max(1 << 24, 4 * (data.find(b"\n") + 1)), 1 << 30)
        table = json.read_json(
            pa.BufferReader(data), read_options=json.ReadOptions(False, block_size=block)
        )
    except Exception as error:
        raise _damaged(file, _LINES, error) from error
    _check(table.schema, table.num_rows, file)
    return _frame(table, file)


def _parquet_pieces(open_file: Opener, file: str, part: str, rows: int) -> Iterator[Rows]:
    try:
        with open_file() as opened, parquet.ParquetFile(opened.stream) as table:
            geo = geoparquet.described(table.schema_arrow)
            _check_kinds(geoparquet.plain(table.schema_arrow, geo), file)
            rows_read = 0
            for batch in _batches(table, rows):
                rows_read += batch.num_rows
                piece = pa.Table.from_batches([batch])
                frame = (
                    _with_arrow_types(piece) if geo is None else geoparquet.frame(piece, geo, file)
                )
                yield Rows(frame, rows_read / table.metadata.num_rows)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(file, "Parquet", error) from None


def _batches(table: parquet.ParquetFile, rows: int) -> Iterator[pa.RecordBatch]:
    """Iterate over batches with one reader for each few groups; a reader keeps all it has read."""
    groups, count = list[int](), 0
    for group in range(table.num_row_groups):
        groups.append(group)
        count += table.metadata.row_group(group).num_rows
        if count >= rows or group + 1 == table.num_row_groups:
            yield from table.iter_batches(rows, groups, use_threads=False)
            groups, count = [], 0


def _feather_pieces(open_file: Opener, file: str, part: str, rows: int) -> Iterator[Rows]:
    try:
        with open_file() as opened, pa.ipc.open_file(opened.stream) as table:
            _check_kinds(table.schema, file)
            total, batches = table.num_record_batches, []
            for i in range(total):
                batches.append(table.get_batch(i))  # batches have any number of rows
                count = sum(batch.num_rows for batch in batches)
                if count < rows and i + 1 < total:
                    continue
                joined = pa.Table.from_batches(batches)
                for start in range(0, count, rows):
                    share = (i + min(1.0, (start + rows) / count)) / total
                    yield Rows(_with_arrow_types(joined.slice(start, rows)), share)
                batches = []
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(file, "Feather", error) from None


def _line_pieces(open_file: Opener, file: str, part: str, rows: int) -> Iterator[Rows]:
    """Read the file twice, since an integer column may have a fraction in its last row."""
    schema: pa.Schema | None = None
    for table, _ in _blocks(open_file, file, None):
        schemas = [table.schema] if schema is None else [schema, table.schema]
        try:
            schema = pa.unify_schemas(schemas, promote_options="permissive")
        except pa.ArrowException as error:
            raise _damaged(file, _LINES, error) from None
    if schema is None:
        return
    _check_kinds(schema, file)
    text_schema = pa.schema(  # dates stay text
        [f.with_type(pa.string()) if pa.types.is_timestamp(f.type) else f for f in schema]
    )
    for table, share in _blocks(open_file, file, text_schema):
        for start in range(0, len(table), rows):
            yield Rows(_with_arrow_types(table.slice(start, rows)), share)


def _blocks(
    open_file: Opener, file: str, schema: pa.Schema | None
) -> Iterator[tuple[pa.Table, float]]:
    """Iterate over tables of some lines each, and the fraction of the file read."""
    parsing = json.ParseOptions(explicit_schema=schema)
    with open_file() as opened:
        while block := opened.stream.read(BLOCK):
            block += opened.stream.readline(BLOCK)
            if len(block) >= 2 * BLOCK:
                raise BadInput(f"{file} has a line of over {BLOCK / 1e6:.0f} MB; write it again.")
            if not block.strip():
                continue
            reading = json.ReadOptions(False, block_size=len(block) + 1)
            try:
                table = json.read_json(pa.BufferReader(block), reading, parsing)
            except pa.ArrowException as error:
                raise _damaged(file, _LINES, error) from None
            yield table.select(schema.names) if schema else table, opened.share()


def _with_arrow_types(table: pa.Table) -> pd.DataFrame:
    """Convert to a data frame with Arrow types."""
    frame: pd.DataFrame = table.to_pandas(ignore_metadata=True, types_mapper=pd.ArrowDtype)
    return frame


def _damaged(file: str, kind: str, error: Exception) -> BadInput:
    reason = f" ({str(error).splitlines()[0][:120]})" if str(error) else ""
    return BadInput(f"{file} cannot be read as {kind}{reason}; write it again.")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _check(schema: pa.Schema, rows: int, file: str) -> None:
    """Check size and types before the cells are decompressed."""
    check_size(file, rows, len(schema))
    _check_kinds(schema, file)


def _check_kinds(schema: pa.Schema, file: str) -> None:
    for column in schema:
        kind = column.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise BadInput(
                f"{file}, column {column.name!r}: its cells are of the type {str(kind)[:60]}, not "
                "numbers or words; leave the column out or give each value a column of its own."
            )


def _frame(table: pa.Table, file: str) -> Content:
    """Convert to a data frame after a check of the size of its text."""
    size = 0
    for column in table.columns:
        for chunk in column.chunks:
            if isinstance(chunk, pa.DictionaryArray) and _is_text(chunk.type.value_type):
                lengths = pc.binary_length(chunk.dictionary)
                size += pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
            elif _is_text(chunk.type):
                size += chunk.nbytes
    if size > 2 * LIMIT_BYTES:
        raise BadInput(
            f"{file} unpacks to {size / 1e6:,.0f} MB of words and the limit is "
            f"{2 * LIMIT_BYTES / 1e6:,.0f} MB; keep fewer rows or columns."
        )
    return Content(table.to_pandas(split_blocks=True, self_destruct=True))


def _write_parquet(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    first = next(frames)
    schema = pa.Schema.from_pandas(first, preserve_index=False)
    with parquet.ParquetWriter(path, schema) as out:
        tables, count = list[pa.Table](), 0
        for frame in chain([first], frames):
            tables.append(pa.Table.from_pandas(frame, schema, preserve_index=False))
            count += len(frame)
            if count >= GROUP_ROWS:
                out.write_table(pa.concat_tables(tables), row_group_size=count)
                tables, count = [], 0
        if tables:
            out.write_table(pa.concat_tables(tables), row_group_size=max(count, 1))


def _write_feather(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    first = pa.Table.from_pandas(next(frames), preserve_index=False)
    compressed = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(str(path), first.schema, options=compressed) as out:
        out.write_table(first.combine_chunks())
        for frame in frames:
            table = pa.Table.from_pandas(frame, first.schema, preserve_index=False)
            out.write_table(table.combine_chunks())


def _write_lines(frames: Iterator[pd.DataFrame], path: Path, style: Style) -> None:
    with path.open("w", encoding="utf-8") as out:
        for frame in frames:
            frame.to_json(
                out,
                orient="records",
                lines=True,
                force_ascii=False,
                double_precision=15,
                date_format="iso",
            )


FORMATS = (
    Format("JSON lines", (".jsonl", ".ndjson"), _read_lines,
           lambda data: _OBJECT.match(data[:2000]) is not None, _write_lines,
           lines=True, pieces=_line_pieces),
    Format("Feather", (".feather", ".arrow"), _read_feather,
           lambda data: data.startswith((b"ARROW1", b"FEA1")), _write_feather,
           pieces=_feather_pieces),
    Format("Parquet", (".parquet", ".pq"), _read_parquet,
           lambda data: data.startswith(b"PAR1"), _write_parquet, pieces=_parquet_pieces),
)  # fmt: skip
