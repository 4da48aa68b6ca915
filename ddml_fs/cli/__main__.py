"""``python -m ddml_fs.cli``."""

from ddml_fs.__main__ import main

if __name__ == "__main__":
    main()
