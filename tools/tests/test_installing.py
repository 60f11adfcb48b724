"""Packages are installed editable into the active environment, and only when they have to be."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

import pytest

BACKEND = '''
"""A build backend that needs nothing: one wheel with one path file."""
import base64, hashlib, pathlib, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    text = pathlib.Path("pyproject.toml").read_text()
    field = lambda key: text.split(f'{key} = "')[1].split('"')[0]
    name, version = field("name"), field("version")
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.pth": str(pathlib.Path.cwd()) + "\\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    record = "".join(f"{path},,\\n" for path in files) + f"{info}/RECORD,,\\n"
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder, wheel), "w") as archive:
        for path, content in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, content)
    return wheel

build_wheel = build_editable
'''


def test_packages_are_installed_editable_once_and_again_when_they_change(world, tmp_path, monkeypatch):
    for name in ("core", "user"):
        (world.root / name).mkdir()
        (world.root / name / "backend.py").write_text(BACKEND)
        (world.root / name / "pyproject.toml").write_text(
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            f'[project]\nname = "{name}"\nversion = "0.1.0"\n'
        )
    world.manifest(
        "workspace: 1\nname: t\npackages:\n"
        '  user: {path: user, version: "0.1.0", depends: [core]}\n  core: {path: core, version: "0.1.0"}\n'
    )
    environment = tmp_path / "env"
    venv.create(environment, with_pip=True)
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    assert {item["installed"] for item in world.run("status", "--json").json["entries"]} == {"missing"}
    answer = world.run("sync", "--offline", "--json")
    assert answer.code == 0, answer.err
    assert answer.json["installed"] == ["core", "user"]
    where = [environment / "bin" / "python", "-c", "import backend; print(backend.__file__)"]
    found = subprocess.run(where, text=True, capture_output=True)
    assert Path(found.stdout.strip()).parent.parent == world.root
    assert {item["installed"] for item in world.run("status", "--json").json["entries"]} == {"current"}
    again = world.run("sync", "--offline", "--json")
    assert again.json["nothing_to_do"] and again.json["installed"] == []
    project = world.root / "user" / "pyproject.toml"
    project.write_text(project.read_text() + "# a new command, say\n")
    assert world.run("sync", "--offline", "--json").json["installed"] == ["user"]
    project.write_text(
        "[build-system]\nrequires = []\nbuild-backend = 'none'\n[project]\nname = 'user'\nversion = '0.1.0'\n"
    )
    failed = world.run("sync", "--offline")
    assert failed.code == 1 and "installing the packages failed" in failed.err


def test_a_wrong_python_is_refused_before_anything_happens(world):
    world.manifest('workspace: 1\nname: t\nrequires-python: ">=9.1"\n')
    answer = world.sync()
    assert answer.code == 1 and "the workspace requires >=9.1" in answer.err
    assert not (world.root / ".ptows").exists()


@pytest.fixture
def failing_pip(five, tmp_path, monkeypatch):
    """An environment whose pip prints what the test wants and fails."""

    def make(said: str) -> None:
        python = tmp_path / "env" / "bin" / "python"
        python.parent.mkdir(parents=True)
        (tmp_path / "said").write_text(said)
        python.write_text(f"#!/bin/sh\ncat {tmp_path}/said >&2\nexit 1\n")
        python.chmod(0o755)
        monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))

    return make


def test_a_failed_install_shows_the_lines_that_tell_and_keeps_the_rest(five, failing_pip):
    failing_pip(
        "  error: subprocess-exited-with-error\n    x did not run successfully.\n"
        "      ERROR: Could not find a version that satisfies the requirement hatchling (from versions: none)\n"
        "      ERROR: No matching distribution found for hatchling from https://me:secret@host/simple\n"
        "      [end of output]\n  note: This error originates from a subprocess.\n"
    )
    answer = five.run("sync")
    assert answer.code == 1
    assert "requirement hatchling (from versions: none)" in answer.err and "end of output" not in answer.err
    assert ".ptows/logs/install.log" in answer.err and "--no-install" in answer.err
    log = (five.root / ".ptows" / "logs" / "install.log").read_text()
    assert "end of output" in log and "secret" not in log + answer.err


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("error: externally-managed-environment\n\nx This environment is externally managed\n", "python -m venv .venv"),
        ("/x/bin/python: No module named pip\n", "-m ensurepip"),
        ("something odd\n", "something odd"),
    ],
)
def test_what_helps_after_a_failed_install(five, failing_pip, said, advice):
    failing_pip(said)
    answer = five.run("sync")
    assert answer.code == 1 and advice in answer.err
