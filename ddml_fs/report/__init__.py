"""Reports: one HTML file that holds everything and needs no network.

They need jinja2 and matplotlib: ``pip install 'ddml-fs[report]'``.
"""

from ddml_fs.report.writing import write_report

__all__ = ["write_report"]
