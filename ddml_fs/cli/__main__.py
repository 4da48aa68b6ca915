"""``python -m ddml_fs.cli``."""

from ddml_fs.cli import app

if __name__ == "__main__":
    app(prog_name="ddml-fs")
