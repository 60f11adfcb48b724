"""``ptows bump``: the next version of a package in every place that has it: pyproject, code, manifest, dependants."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from ptows.edit.toml_text import raise_requirement, set_version
from ptows.edit.yaml_text import replace_scalars, write_text
from ptows.errors import PtowsError
from ptows.manifest import Entry, Manifest
from ptows.project import normalised, read_project
from ptows.specifier import release

PARTS = ("major", "minor", "patch")
#: Modules that may repeat the version as ``__version__``, in a package of the ``src`` layout or beside pyproject.toml.
_VERSION_MODULES = ("__init__.py", "_version.py", "version.py", "__about__.py")
_VERSION_LINE = re.compile(r"^(__version__[ \t]*(?::[^=\n]+)?=[ \t]*)(['\"])([^'\"\n]*)\2", re.MULTILINE)


def next_version(version: str, part: str) -> str:
    """``1.4.2`` with part ``minor`` gives ``1.5.0``; pre-release marks are dropped.

    Raises:
        PtowsError: the version does not start with numbers.
    """
    numbers = release(version)
    if not numbers:
        raise PtowsError(f"the version '{version}' has no numbers to raise")
    wide = [*numbers, 0, 0][: max(3, len(numbers))]
    index = PARTS.index(part)
    wide[index] += 1
    return ".".join(str(number) for number in (*wide[: index + 1], *([0] * (len(wide) - index - 1))))


@dataclass
class Bump:
    """A planned version change: new text by file."""

    entry: Entry
    before: str
    after: str
    texts: dict[Path, str] = field(default_factory=dict)

    def write(self) -> None:
        for path, text in self.texts.items():
            write_text(path, text)


def plan_bump(manifest: Manifest, entry: Entry, part: str) -> Bump:
    """Every file that changes, worked out before any is written.

    Raises:
        PtowsError: no version to raise, or a file that cannot be changed in place.
    """
    folder = manifest.root / entry.path
    project = read_project(folder)
    if project is None or not project.version:
        raise PtowsError(f"'{entry.name}' has no version in {entry.path}/pyproject.toml")
    if entry.is_git:
        raise PtowsError(f"'{entry.name}' comes from {entry.shared_url}", "raise its version there, then ptows pin")
    after = next_version(project.version, part)
    bump = Bump(entry, project.version, after)
    bump.texts[folder / "pyproject.toml"] = set_version(project.text, after, f"{entry.path}/pyproject.toml")
    for module in version_modules(folder):
        code = module.read_bytes().decode("utf-8", "surrogateescape")
        changed = _VERSION_LINE.sub(lambda match: _raised(match, project.version, after), code)
        if changed != code:
            bump.texts[module] = changed
    version_node = entry.nodes["version"]
    path = manifest.root / version_node.file
    text = path.read_bytes().decode("utf-8-sig")
    bump.texts[path] = replace_scalars(text, [(version_node, after)], version_node.file)
    for other in manifest.packages:
        requirer = read_project(manifest.root / other.path) if not other.is_git and other.name != entry.name else None
        if requirer is not None:
            file = manifest.root / other.path / "pyproject.toml"
            name = normalised(project.name)
            changed = raise_requirement(requirer.text, name, project.version, after, f"{other.path}/pyproject.toml")
            if changed != requirer.text:
                bump.texts[file] = changed
    return bump


def version_modules(folder: Path) -> list[Path]:
    """Modules of the package in ``folder`` where a ``__version__`` usually stands."""
    found = [path for name in _VERSION_MODULES for place in ("src/*", "*") for path in folder.glob(f"{place}/{name}")]
    return sorted(path for path in found if path.is_file())


def _raised(match: re.Match[str], before: str, after: str) -> str:
    quote = match[2]
    return f"{match[1]}{quote}{after}{quote}" if match[3] == before else match[0]
