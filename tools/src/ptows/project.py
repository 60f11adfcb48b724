"""What a package's own ``pyproject.toml`` says, and whether that is what the active environment has installed."""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptows.errors import PtowsError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Project:
    """Name, version ("" when computed by the build) and requirements of a package."""

    name: str
    version: str
    requirements: tuple[str, ...]
    text: str


def read_project(folder: Path) -> Project | None:
    """The ``[project]`` table of ``folder``; None when there is no pyproject.toml.

    Raises:
        PtowsError: the file is not valid TOML or has no ``[project]`` table.
    """
    path = folder / "pyproject.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise PtowsError(f"cannot read {path}: {error}") from None
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PtowsError(f"{path} is not valid TOML: {error}") from None
    table = data.get("project")
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise PtowsError(f"{path} has no [project] table with a name", "add [project] name = ..., version = ...")
    requirements = table.get("dependencies", [])
    return Project(
        name=table["name"],
        version=str(table.get("version", "")),
        requirements=tuple(str(item) for item in requirements) if isinstance(requirements, list) else (),
        text=text,
    )


def normalised(name: str) -> str:
    """The distribution name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True)
class Environment:
    """A Python environment that packages are installed into."""

    python: str
    folders: tuple[Path, ...]
    prefix: str

    def installed(self) -> dict[str, tuple[str, str]]:
        """Distribution name to (version, folder of an editable install or "")."""
        found: dict[str, tuple[str, str]] = {}
        for folder in self.folders:
            try:
                names = os.listdir(folder)
            except OSError:
                continue
            for name in names:
                if name.endswith(".dist-info"):
                    distribution, _, version = name.removesuffix(".dist-info").rpartition("-")
                    found.setdefault(normalised(distribution), (version, _editable_folder(folder / name)))
        return found


def active_environment() -> Environment:
    """The activated virtual environment, or the environment this program runs in."""
    virtual = os.environ.get("VIRTUAL_ENV", "")
    if virtual and os.path.realpath(virtual) != os.path.realpath(sys.prefix):
        python = Path(virtual, "Scripts" if os.name == "nt" else "bin", "python")
        if python.exists():
            folders = [*Path(virtual).glob("lib/python3*/site-packages"), Path(virtual, "Lib", "site-packages")]
            return Environment(str(python), tuple(f for f in folders if f.is_dir()), virtual)
    paths = sysconfig.get_paths()
    return Environment(sys.executable, tuple(dict.fromkeys(Path(paths[k]) for k in ("purelib", "platlib"))), sys.prefix)


def _editable_folder(info: Path) -> str:
    from urllib.parse import unquote, urlsplit

    try:
        data = json.loads((info / "direct_url.json").read_text(encoding="utf-8"))
        if data.get("dir_info", {}).get("editable"):
            return os.path.realpath(unquote(urlsplit(str(data["url"])).path))
    except (OSError, ValueError, KeyError, AttributeError):
        pass
    return ""


def install_state(folder: Path, project: Project | None, installed: dict[str, tuple[str, str]]) -> str:
    """``current``, ``missing``, ``other version``, ``other folder``; ``no project``: nothing can be installed."""
    if project is None:
        return "no project"
    found = installed.get(normalised(project.name))
    if found is None:
        return "missing"
    version, place = found
    if place != os.path.realpath(folder):
        return "other folder"
    return "current" if not project.version or version == project.version else "other version"


def requirement_name(requirement: str) -> str:
    """``Foo_Bar[extra]>=1; marker`` gives ``foo-bar``."""
    match = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", requirement)
    return normalised(match[1]) if match else ""
