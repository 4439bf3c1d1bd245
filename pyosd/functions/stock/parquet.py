# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `parquet`: some columns and some rows of a table in Parquet.

Parameters: columns=NAME,NAME...: these, in this order; default: all.  where=NAME and is=TEXT: the rows
with this value in the column.  as=csv: the table as CSV with a header, and not as Parquet.
"""

from __future__ import annotations

import osd
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet


def options_of(stage: osd.StageInput) -> dict[str, str]:
    """Its parameters.  Raises: ValueError: there are others, or a value is none of theirs."""
    if unknown := stage.options.keys() - {"columns", "where", "is", "as"}:
        raise ValueError(f"unknown parameters: {', '.join(sorted(unknown))}")
    if "is" in stage.options and "where" not in stage.options:
        raise ValueError("is=TEXT needs where=NAME")
    if stage.options.get("as", "csv") != "csv":
        raise ValueError("the parameter as is csv")
    return stage.options


def selected(data: bytes, options: dict[str, str]) -> pyarrow.Table:
    """The rows and columns.  One thread reads: a sandbox may have no more."""
    file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data))
    names = options["columns"].split(",") if "columns" in options else file.schema_arrow.names
    where = options.get("where")
    needed = names if where is None or where in names else [*names, where]
    table = file.read(columns=needed, use_threads=False)
    if where is not None:
        column = table.column(where)
        value = pyarrow.scalar(options.get("is", "")).cast(column.type)
        table = table.filter(pyarrow.compute.equal(column, value))
    return table.select(names)


def main(args: bytes) -> bytes:
    """Parquet to Parquet, or to CSV."""
    stage = osd.stage(args)
    options = options_of(stage)
    table, made = selected(stage.data, options), pyarrow.BufferOutputStream()
    if "as" in options:
        pyarrow.csv.write_csv(table, made)
    else:
        pyarrow.parquet.write_table(table, made)
    return bytes(made.getvalue())
