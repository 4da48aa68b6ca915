"""``python -m ddml_fs``: the command line."""

from ddml_fs.cli import app

if __name__ == "__main__":
    app(prog_name="ddml-fs")
