"""Small result tables, beside the script that made them."""

from pathlib import Path

import pandas as pd

RESULTS = Path(__file__).parent / "results"


def write(name, title, table, summary, command):
    """Write all rows as CSV and their summary as Markdown, and print the summary."""
    RESULTS.mkdir(exist_ok=True)
    table.to_csv(RESULTS / f"{name}.csv", index=False, float_format="%.4f")
    made = f"Made by `{command}` on {pd.Timestamp.today().date()}."
    rows = summary.to_markdown(floatfmt=".4f").replace("nan", "   ")
    text = f"# {title}\n\n{rows}\n\n{made}\n"
    (RESULTS / f"{name}.md").write_text(text)
    print(text)
