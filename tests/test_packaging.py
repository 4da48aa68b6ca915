"""The package's metadata agree with each other, and its modules keep the project's rules."""

import ast
import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from ddml_fs.version import __version__

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("ddml_fs", "experiments", "benchmarks")
MAX_LINES = 350
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}  # public, in spite of their names


def modules(*packages):
    """Paths of all modules of the packages, each relative to the project's folder."""
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    assert paths
    return [path.relative_to(ROOT) for path in paths]


def parse(text):
    return ast.parse(text) if isinstance(text, str) else ast.parse((ROOT / text).read_text())


def is_private(name):
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def is_own(node):
    """Whether an expression is ``self``, ``cls`` or ``super()``."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def foreign_private_names(tree):
    """Uses of private names that belong to another module of the project or another object.

    Parameters
    ----------
    tree : ast.Module

    Returns
    -------
    uses : list of str
        Each with its line.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            ours = node.level > 0 or node.module.split(".")[0] in PACKAGES
            parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            found += [(node.lineno, name) for name in parts if ours and is_private(name)]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first, *rest = alias.name.split(".")
                found += [(node.lineno, n) for n in rest if first in PACKAGES and is_private(n)]
        elif isinstance(node, ast.Attribute):
            private = is_private(node.attr) and node.attr not in NAMED_TUPLE
            if private and not is_own(node.value):
                found.append((node.lineno, ast.unparse(node)))
    return [f"{line}: {name}" for line, name in sorted(found)]


def calls_of_id(tree):
    """Lines that call the builtin ``id``."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "id"
    ]


def test_version_is_that_of_the_installed_package():
    assert __version__ == importlib.metadata.version("ddml-fs")
    assert "version" in PROJECT["dynamic"]


def test_package_offers_its_version_and_its_types():
    import ddml_fs

    assert ddml_fs.__version__ == __version__
    assert (ROOT / "ddml_fs" / "py.typed").read_text() == ""


def test_lower_bounds_are_the_lowest_constraints():
    bounds = {}
    for requirement in map(Requirement, PROJECT["dependencies"]):
        (bound,) = (s.version for s in requirement.specifier if s.operator == ">=")
        bounds[canonicalize_name(requirement.name)] = Version(bound)
    pins = {}
    for line in (ROOT / "constraints-lowest.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, pin = line.split("==")
            pins[canonicalize_name(name)] = Version(pin)
    assert pins == bounds


def test_extras_for_clusters_are_tested_and_pinned():
    extras = PROJECT["optional-dependencies"]
    (own,) = (r for r in map(Requirement, extras["test"]) if r.name == "ddml-fs")
    pins = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    for name in ("dask", "ray"):
        assert name in own.extras
        assert {requirement.name for requirement in map(Requirement, extras[name])} <= pins
    assert "distributed" in pins


def test_citation():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"]
    for entry in (citation, *citation["references"]):
        assert entry["title"]
        assert entry["authors"]


def test_changelog():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased" or headings[0].startswith(f"{__version__} ")


def test_no_module_is_too_long():
    lengths = {
        str(path): len((ROOT / path).read_text().splitlines()) for path in modules("ddml_fs")
    }
    assert {path: n for path, n in lengths.items() if n > MAX_LINES} == {}


def test_no_module_uses_private_names_of_another():
    uses = {str(path): foreign_private_names(parse(path)) for path in modules(*PACKAGES)}
    assert {path: found for path, found in uses.items() if found} == {}


def test_no_call_of_id():
    calls = {str(path): calls_of_id(parse(path)) for path in modules("ddml_fs")}
    assert {path: lines for path, lines in calls.items() if lines} == {}


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("from ddml_fs.effect import _x, y", ["1: _x"]),
        ("from ddml_fs._effect import y", ["1: _effect"]),
        ("from .effect import _x", ["1: _x"]),
        ("from . import _x", ["1: _x"]),
        ("import experiments._x", ["1: _x"]),
        ("a\nmodel._fit(b.c._d)", ["2: b.c._d", "2: model._fit"]),
        ("self.model._fit()", ["1: self.model._fit"]),
        ("from sklearn.utils import _safe_indexing", []),
        ("from ddml_fs.version import __version__", []),
        ("self._x, cls._x, super()._x, a.__dict__, a._replace(), __file__", []),
    ],
)
def test_private_names_are_found(text, uses):
    assert foreign_private_names(parse(text)) == uses


def test_calls_of_id_are_found():
    assert calls_of_id(parse("a.id(b)\nid\nx = {id(b): 1}")) == [3]
