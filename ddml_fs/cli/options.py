"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(help="CSV, TSV, Parquet, Feather or Excel; compressed too.")]
Label = Annotated[str, typer.Option("--label", "--outcome", help="Column of the label.")]
Positive = Annotated[
    str, typer.Option(help="Class of the label that is 1; else the last in alphabetical order.")
]
Domain = Annotated[str, typer.Option(help="Column of the domain: site, shop, year, ...")]
Weight = Annotated[str, typer.Option(help="Column of the rows' weights; no feature.")]
Cluster = Annotated[
    str, typer.Option(help="Column of clusters: rows of one depend on one another; no feature.")
]
Scheduler = Annotated[
    str, typer.Option(help="Address of a dask scheduler whose workers compute: tcp://host:port.")
]
ClusterOrScheduler = Annotated[
    str,
    typer.Option(
        help="Column of clusters: rows of one depend on one another; no feature. "
        "Or an address, as --scheduler."
    ),
]
Columns = Annotated[
    list[str] | None, typer.Option(help="Features, by name or pattern such as 'lab_*'.")
]
Drop = Annotated[list[str] | None, typer.Option(help="Columns to leave out, by name or pattern.")]
Id = Annotated[list[str] | None, typer.Option("--id", help="Columns that name rows; left out.")]
Keep = Annotated[
    list[str] | None, typer.Option(help="Features although their text differs in every row.")
]
Task = Annotated[str, typer.Option(help="auto, classification or regression.")]
Sep = Annotated[str | None, typer.Option(help="Separator; detected unless given.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of text; detected unless given.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.", min=0)]
Jobs = Annotated[int, typer.Option("--n-jobs", help="Workers; -1 is one per core.")]
Json = Annotated[
    bool, typer.Option("--json", help="JSON on standard output; messages go to standard error.")
]
Report = Annotated[Path | None, typer.Option(help="Write a report to this HTML file.")]
Output = Annotated[
    Path | None, typer.Option(help="Write the full table: .csv, .tsv, .parquet, .feather, .xlsx.")
]
DryRun = Annotated[bool, typer.Option(help="Read and check the file, say what is assumed, stop.")]
