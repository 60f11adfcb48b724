"""Stubs, reference pages and the status matrix are what the operator definitions give, and say what is true."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest
from operator_samples import SAMPLES
from pypto.ops import all_ops, get_op
from pypto.ops.registry import FAMILIES
from pypto.tools.opdocs import WORKSPACE, generated, outdated, write
from pypto.tools.opdocs.__main__ import main
from pypto.tools.opdocs.facts import all_facts
from pypto.tools.opdocs.prose import PROSE
from pypto.tools.opdocs.results import result_kind

from pypto import ir

GENERATED = generated()
STUBS = [path for path in GENERATED if path.endswith("_ops.pyi")]
LEVELS = {"Tile": ir.TileType, "Tensor": ir.TensorType, "Scalar": ir.ScalarType, "Array": ir.ArrayType}


@pytest.mark.skipif(not (WORKSPACE / "docs").is_dir(), reason="installed without the workspace")
def test_the_files_of_the_repository_are_current():
    assert not outdated(), "run python -m pypto.tools.opdocs"


def test_no_page_remains_of_a_module_that_is_gone():
    for folder in {Path(path).parent for path in GENERATED if path.startswith("docs/")}:
        found = {f"{folder.as_posix()}/{file.name}" for file in (WORKSPACE / folder).glob("*.md")}
        assert found <= set(GENERATED)


def test_writing_twice_changes_nothing(tmp_path):
    assert set(write(tmp_path)) == set(GENERATED)
    assert write(tmp_path) == [] and outdated(tmp_path) == []
    page = tmp_path / "docs/en/operators/views.md"
    page.write_text("edited by hand\n")
    assert outdated(tmp_path) == ["docs/en/operators/views.md"]


def test_the_command_names_outdated_files(tmp_path, capsys):
    assert main(["--root", str(tmp_path)]) == 2
    assert "is no workspace" in capsys.readouterr().err
    (tmp_path / "pypto").mkdir()
    (tmp_path / "pypto" / "pyproject.toml").touch()
    assert main(["--root", str(tmp_path), "--check"]) == 1
    assert "docs/en/operators/status.md is out of date" in capsys.readouterr().err
    assert main(["--root", str(tmp_path)]) == 0
    assert main(["--root", str(tmp_path), "--check"]) == 0


# -- stubs -------------------------------------------------------------------------------------------------------


def functions_of(text: str) -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


@pytest.mark.parametrize("path", STUBS)
def test_stubs_have_the_functions_and_parameters_of_their_module(path):
    module = importlib.import_module(path.removeprefix("pypto/src/").removesuffix(".pyi").replace("/", "."))
    written = functions_of(GENERATED[path])
    real = {name: f for name in module.__all__ if inspect.isfunction(f := getattr(module, name))}
    assert set(written) == set(real)
    for name, overloads in written.items():
        signature = inspect.signature(real[name])
        for node in overloads:
            listed = ast.unparse(node.args)
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            names += [a.arg for a in (node.args.vararg, node.args.kwarg) if a]
            assert sorted(names) == sorted({*signature.parameters, "span"}), listed
            assert all(a.annotation for a in (*node.args.args, *node.args.kwonlyargs)), listed


@pytest.mark.parametrize("path", STUBS)
def test_stubs_know_every_name_they_use(path):
    tree = ast.parse(GENERATED[path])
    known = {a.asname or a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    known |= {n.target.id for n in tree.body if isinstance(n, ast.AnnAssign)}
    known |= {"int", "float", "str", "bool", "tuple", "list", "overload"}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    assert used <= known


@pytest.mark.parametrize("package", ["pypto.language", "pypto.language.op"])
def test_package_stubs_offer_every_public_name(package):
    path = f"pypto/src/{package.replace('.', '/')}/__init__.pyi"
    defined, offered = set(), set()
    for node in ast.parse(GENERATED[path]).body:
        if isinstance(node, ast.ImportFrom):
            defined |= {a.asname for a in node.names}
        elif isinstance(node, ast.AnnAssign):
            defined.add(node.target.id)
        elif ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node) == "__all__":
            offered = set(ast.literal_eval(node.value))
        elif isinstance(node, ast.Assign):
            defined |= {n.id for n in ast.walk(node.targets[0]) if isinstance(n, ast.Name)}
    assert offered == defined
    module = importlib.import_module(package)
    internal = {"op", "parser", "typing", "constructs", "arg_direction"}  # modules of the package itself
    assert set(module.__all__) - internal <= offered
    assert all(hasattr(module, name) for name in offered)


# -- facts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_stated_results_are_what_the_rules_give(name):
    sample = SAMPLES[name]()
    kind, deduced = result_kind(get_op(name)), sample.call().type
    if kind.startswith("tuple"):
        assert isinstance(deduced, ir.TupleType)
        assert all(isinstance(part, LEVELS[kind.split("[")[1].split(",")[0]]) for part in deduced.types)
    else:
        assert isinstance(deduced, LEVELS[kind])


def test_every_operator_has_its_place():
    assert set(PROSE) == set(FAMILIES)
    facts = all_facts()
    assert {f.name for f in facts} == {d.name for d in all_ops() if not d.name.startswith("test.")}
    for language in ("en", "zh"):
        status = GENERATED[f"docs/{language}/operators/status.md"]
        for f in facts:
            assert f"\n## {f.name}\n" in GENERATED[f"docs/{language}/operators/{f.page}.md"]
            assert f"[{f.name}](" in status


def test_links_of_the_pages_lead_somewhere():
    for path, text in GENERATED.items():
        for target in re.findall(r"\]\(([^)#]+)", text) if path.endswith(".md") else ():
            assert f"{path.rpartition('/')[0]}/{target}" in GENERATED


def test_pages_say_what_the_definition_says():
    page = GENERATED["docs/en/operators/movement.md"]
    store = page.partition("\n## tile.store\n")[2].partition("\n## ")[0]
    assert "pl.store(tile, offsets, output_tensor, shapes=None, *, atomic=AtomicType.None_)" in store
    assert "| `tile` | tile | Vec, Acc |  |" in store
    assert "| `output_tensor` | tensor |  | Write* |" in store
    assert "`pto.tstore`" in store and "`TSTORE`" in store
    assert "the result is `output_tensor`; writes through Dma" in store


def test_tables_are_rectangular():
    for path, text in GENERATED.items():
        if not path.endswith(".md"):
            continue
        widths: list[int] = []
        for line in text.split("\n"):
            if line.startswith("|"):
                widths.append(len(re.findall(r"(?<!\\)\|", line)))
            else:
                assert len(set(widths)) <= 1, path
                widths = []
