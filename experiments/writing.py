"""How result tables are kept."""

import pandas as pd
from rich import print


class Writer:
    """Puts tables into a folder, as CSV and Markdown, with the command that made them and the date.

    Parameters
    ----------
    folder : Path
    command : str
    """

    def __init__(self, folder, command):
        self.folder, self.command = folder, command

    def __call__(self, name, title, table, notes="", digits=4):
        """Write a DataFrame, its index included, under a name without an ending."""
        self.folder.mkdir(parents=True, exist_ok=True)
        table = table.reset_index()
        table.to_csv(self.folder / f"{name}.csv", float_format=f"%.{digits}f", index=False)
        text = table.to_markdown(floatfmt=f".{digits}f", index=False).replace(" nan ", "     ")
        made = f"Made by `{self.command}` on {pd.Timestamp.today().date()}."
        parts = [f"# {title}", notes, text, made]
        (self.folder / f"{name}.md").write_text("\n\n".join(p for p in parts if p) + "\n")
        print(f"{self.folder / name}.md")
