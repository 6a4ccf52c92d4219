"""Docstrings and the guide: their examples run. The stubs: they say what the module has."""

import ast
import doctest
import importlib.metadata
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import merganser
import merganser._array
import merganser._dataset
import merganser._merganser
import merganser._sort
import merganser._view
from conftest import ROOT

MODULES = [merganser, merganser._array, merganser._sort, merganser._view]


@pytest.mark.parametrize("test", [
    test for module in MODULES for test in doctest.DocTestFinder().find(module, globs=vars(module) if module is merganser._array else {}) if test.examples
], ids=lambda test: test.name)
def test_examples_of_docstrings(test):
    if "mg.open_view(" in test.docstring:
        merganser.sort_view("in/*.parquet", "by-name.view", by="name")
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test)
    assert runner.failures == 0


def test_everything_public_has_an_example():
    lacking = []
    for name in merganser.__all__:
        found = getattr(merganser, name)
        if inspect.isfunction(found) and ">>>" not in (found.__doc__ or ""):
            lacking.append(name)
    for name, method in vars(merganser.View).items():
        if not name.startswith("_") and not (inspect.getdoc(method) or "").strip():
            lacking.append(f"View.{name}")
    assert not lacking


def test_the_guide_runs(capsys):
    """The blocks of docs/tables/python.md, one after the other: each prints what the block behind it shows."""
    page = (ROOT / "docs/tables/python.md").read_text()
    names = {}
    blocks = re.findall(r"```(python|text)\n(.*?)```", page, re.DOTALL)
    assert len([kind for kind, _ in blocks if kind == "python"]) >= 4
    for number, (kind, text) in enumerate(blocks):
        if kind == "python":
            capsys.readouterr()
            exec(compile(text, f"block {number}", "exec"), names)
            printed = capsys.readouterr().out
            if number + 1 < len(blocks) and blocks[number + 1][0] == "text":
                assert printed == blocks[number + 1][1]
            else:
                assert printed == ""


def arguments(node):
    """The arguments of a function in a stub: names, and whether each has a default."""
    args = node.args
    positional = [argument.arg for argument in args.posonlyargs + args.args]
    return [name for name in positional if name not in ("self", "cls")]


def test_stubs_agree_with_the_module():
    stub = ast.parse((Path(merganser.__file__).parent / "_merganser.pyi").read_text())
    native = merganser._merganser
    told = set()
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            told.add(node.name)
            assert list(inspect.signature(getattr(native, node.name)).parameters) == arguments(node), node.name
        elif isinstance(node, ast.AnnAssign):
            told.add(node.target.id)
        elif isinstance(node, ast.ClassDef):
            told.add(node.name)
            of_class = getattr(native, node.name)
            methods = {method.name: method for method in node.body if isinstance(method, ast.FunctionDef)}
            public = {name for name in vars(of_class) if not name.startswith("_") or name.startswith("__arrow")}
            assert public == {name for name in methods if not name.startswith("_") or name.startswith("__arrow")}
            for name, method in methods.items():
                found = getattr(of_class, name)
                is_property = any(isinstance(mark, ast.Name) and mark.id == "property" for mark in method.decorator_list)
                assert is_property == inspect.isgetsetdescriptor(found), name
                if not is_property and not name.startswith("__") or name.startswith("__arrow"):
                    names = list(inspect.signature(found).parameters)
                    assert [one for one in names if one != "self"] == arguments(method), name
    public = {name for name in vars(native) if not name.startswith("__") or name == "__version__"}
    assert told == public - {"_merganser"}, told ^ public


def test_the_wheel_is_whole():
    folder = Path(merganser.__file__).parent
    assert (folder / "py.typed").exists() and (folder / "_merganser.pyi").exists()
    assert merganser.__version__ == re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    about = importlib.metadata.metadata("merganser")
    assert about["Version"] == merganser.__version__ and about["License-Expression"] == "Apache-2.0"
    assert any(file.name == "LICENSE" for file in importlib.metadata.files("merganser"))
    assert {"arrow", "numpy", "spark"} <= set(about.get_all("Provides-Extra"))
    assert importlib.util.find_spec("merganser_spark")
