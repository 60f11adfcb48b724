"""Find a C++ compiler, compile shared libraries in parallel, and keep the results in a content-addressed cache.

The cache lives in ``$PTO_CACHE_DIR`` or ``~/.cache/pto``. A result is looked up in two steps, like a compiler cache
does: the source, flags and compiler give a *manifest* that lists the headers the compile read; when all of them still
have the recorded content, the manifest names the library. Sources that differ only in names nobody outside sees have
one canonical text, and share a library through a manifest of that text. Files appear by atomic rename, so a killed
process leaves nothing half-written behind; beside each library stands its digest, so that one which was cut short by a
full disk or a copy is compiled again instead of being loaded.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from simpler_runtime.errors import ToolchainError

INCLUDE_DIR = Path(__file__).parent / "include"

_Result = TypeVar("_Result")

_CACHE_FORMAT = "3"
_DIGEST_SUFFIX = ".sha256"
_LEFTOVER_SECONDS = 24 * 3600
_BASE_FLAGS = (
    "-std=gnu++17",
    "-O3",
    "-march=native",
    # Results must not depend on what the optimiser fuses: multiply-add is written explicitly where it is meant.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    # Equal names in different kernels must never be merged, and the loader has less to do.
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-U_FORTIFY_SOURCE",
    "-pipe",
    "-w",
)
_GCC_FLAGS = (
    ("-fno-gnu-unique", "-fcf-protection=none") if platform.machine() in ("x86_64", "AMD64") else ("-fno-gnu-unique",)
)

_NO_COMPILER = """no C++ compiler found. Looked at $CXX, c++, g++, clang++ and the 'ziglang' package. Do one of:
  - install one with the system's package manager (Debian/Ubuntu: apt install g++; Fedora: dnf install gcc-c++)
  - pip install ziglang   (a compiler as a wheel, no root needed)
  - set CXX to the compiler's path"""


@dataclass(frozen=True)
class Compiler:
    """A compiler command; ``identity`` changes whenever the program does."""

    command: tuple[str, ...]
    identity: str

    @property
    def flags(self) -> tuple[str, ...]:
        return () if self.is_clang else _GCC_FLAGS

    @property
    def is_clang(self) -> bool:
        return _is_clang(self)


@dataclass(frozen=True)
class CompileUnit:
    """One source file that becomes one shared library."""

    source: Path
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    prelude: Path | None = None
    """Header put in front of the source."""
    name: str = field(default="", compare=False)
    """How messages call the unit."""
    canonical: Callable[[str], str] | None = None
    """Source text to a text that is equal for sources which compile to the same library; None: only equal files are."""


def cache_dir() -> Path:
    """Root of the cache; created on first use."""
    configured = os.environ.get("PTO_CACHE_DIR")
    return Path(configured) if configured else Path.home() / ".cache" / "pto"


def find_compiler() -> Compiler:
    """The compiler to use. Raises ToolchainError with advice when there is none."""
    return _find_compiler(os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _find_compiler(configured: str, _path: str) -> Compiler:
    if configured:
        command = configured.split()
        program = shutil.which(command[0])
        if program is None:
            raise ToolchainError(f"the compiler named by $CXX was not found: {configured!r}. Correct or unset CXX.")
        return _describe((program, *command[1:]))
    for name in ("c++", "g++", "clang++"):
        program = shutil.which(name)
        if program is not None:
            return _describe((program,))
    if importlib.util.find_spec("ziglang") is None:
        raise ToolchainError(_NO_COMPILER)
    return _describe((sys.executable, "-m", "ziglang", "c++"))


def _describe(command: tuple[str, ...]) -> Compiler:
    program = os.path.realpath(command[0])
    status = os.stat(program)
    return Compiler(command, f"{' '.join(command)} {program} {status.st_size} {status.st_mtime_ns} {_cpu_identity()}")


@lru_cache(maxsize=1)
def _cpu_identity() -> str:
    """What -march=native depends on."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    wanted = ("model name", "flags", "Features", "CPU part")
    block = text.split("\n\n", 1)[0]
    return hashlib.sha256("".join(line for line in block.splitlines() if line.startswith(wanted)).encode()).hexdigest()[
        :16
    ]


@lru_cache(maxsize=8)
def _is_clang(compiler: Compiler) -> bool:
    answer = _Cache().entry("compilers", _digest(compiler.identity), ".txt")
    try:
        return answer.read_text() == "clang"
    except OSError:
        pass
    try:
        result = subprocess.run(
            [*compiler.command, "--version"], capture_output=True, encoding="utf-8", errors="replace", check=False
        )
    except OSError as error:
        raise ToolchainError(f"cannot run the compiler {compiler.command[0]} ({error.strerror})") from error
    if result.returncode != 0:
        raise ToolchainError(f"{' '.join(compiler.command)} --version failed:\n{result.stderr.strip()}")
    clang = "clang" in result.stdout
    with contextlib.suppress(OSError):  # the next process asks again
        _write_atomically(answer, b"clang" if clang else b"gcc")
    return clang


def compile_libraries(units: Sequence[CompileUnit], *, jobs: int | None = None) -> list[Path]:
    """Shared libraries of all units, in order; what is not in the cache is compiled in parallel.

    Raises ToolchainError with the compiler's output when a unit does not compile. ``jobs`` defaults to the number of
    processors.
    """
    compiler = find_compiler()
    cache = _Cache()
    results: list[Path | None] = [cache.lookup(compiler, unit) for unit in units]
    groups: dict[tuple[str, Path], list[int]] = {}
    for index, result in enumerate(results):
        if result is None:
            groups.setdefault((cache.meaning(compiler, units[index]), units[index].source.parent), []).append(index)

    def compile_group(item: tuple[tuple[str, Path], list[int]]) -> Path:
        (meaning, _), members = item
        return _stored(lambda: cache.compile(compiler, meaning, [units[index] for index in members]))

    for members, library in zip(groups.values(), _parallel(compile_group, list(groups.items()), jobs)):
        for index in members:
            results[index] = library
    return [result for result in results if result is not None]


def build_library(
    sources: Iterable[Path], *, include_dirs: Iterable[Path], flags: Iterable[str] = (), name: str
) -> Path:
    """One shared library of several sources. Every file beside the sources counts as input.

    There are as many translation units as processors, each including several sources: headers are read and templates
    instantiated once per unit, not once per source. So names must be unique across the sources.
    """
    compiler = find_compiler()
    sources = sorted(sources)
    include_dirs = tuple(include_dirs)
    folders = {source.parent for source in sources} | set(include_dirs)
    inputs = sorted(path for folder in folders for path in folder.iterdir() if path.is_file())
    command_flags = (*_base_flags(compiler), *flags)
    key = _digest(compiler.identity, *command_flags, *(f"{path.name}:{_file_digest(path)}" for path in inputs))
    target = _Cache().entry("libraries", key, ".so")
    if _is_intact(target):
        return target
    includes = [f"-I{directory}" for directory in include_dirs]
    _stored(lambda: _build(compiler, sources, [*command_flags, *includes], name, target))
    return target


def _build(compiler: Compiler, sources: list[Path], flags: list[str], name: str, target: Path) -> None:
    with _work_dir() as work:
        objects = []
        for number, group in enumerate(_balanced(sources, len(os.sched_getaffinity(0)))):
            text = "".join(f'#include "{source.resolve()}"\n' for source in group)
            (work / f"part{number}.cpp").write_text(text)
            objects.append(work / f"part{number}.o")

        def compile_one(target: Path) -> None:
            source = target.with_suffix(".cpp")
            _run([*compiler.command, *flags, "-c", str(source), "-o", str(target)], name)

        _parallel(compile_one, objects, None)
        output = work / "library.so"
        _run([*compiler.command, "-shared", *map(str, objects), "-o", str(output), "-pthread", "-ldl"], name)
        _publish(output, target)


def _balanced(sources: Sequence[Path], count: int) -> list[list[Path]]:
    """At most ``count`` non-empty groups of about equal size."""
    groups: list[list[Path]] = [[] for _ in range(min(count, len(sources)))]
    weights = [0] * len(groups)
    for source in sorted(sources, key=lambda path: path.stat().st_size, reverse=True):
        lightest = weights.index(min(weights))
        groups[lightest].append(source)
        weights[lightest] += source.stat().st_size
    return groups


def store_binary(binary: bytes, suffix: str = ".so") -> Path:
    """A file in the cache with this content."""
    digest = hashlib.sha256(binary).hexdigest()
    target = _Cache().entry("binaries", digest, suffix)
    if not target.exists() or _file_digest(target) != digest:
        _stored(lambda: _write_atomically(target, binary))
    return target


class _Cache:
    """The two-step lookup and the compile behind it. One object serves one build, so files are read once."""

    def __init__(self) -> None:
        self._root = cache_dir()
        self._digests: dict[str, str | None] = {}

    def entry(self, kind: str, key: str, suffix: str) -> Path:
        return self._root / kind / key[:2] / f"{key[2:]}{suffix}"

    def lookup(self, compiler: Compiler, unit: CompileUnit) -> Path | None:
        found = self._recorded(self._unit_key(compiler, unit), unit)
        return found[0] if found is not None else None

    def meaning(self, compiler: Compiler, unit: CompileUnit) -> str:
        """Key of what the unit compiles to: equal for sources with equal canonical text."""
        key = self._unit_key(compiler, unit)
        if unit.canonical is None:
            return key
        text = unit.canonical(unit.source.read_text(encoding="utf-8", errors="backslashreplace"))
        return _digest(_CACHE_FORMAT, compiler.identity, "canonical", text, *_unit_flags(compiler, unit))

    def compile(self, compiler: Compiler, meaning: str, units: Sequence[CompileUnit]) -> Path:
        """The library of units that mean the same: an earlier one, or the first unit compiled."""
        found = self._recorded(meaning, units[0]) or self._compiled(compiler, meaning, units[0])
        for key in {meaning, *(self._unit_key(compiler, unit) for unit in units)}:
            self._record(key, *found[1:])
        return found[0]

    def _recorded(self, key: str, unit: CompileUnit) -> tuple[Path, str, list] | None:
        """Library, its key and the digests of its headers, when the cache holds it for the headers of today."""
        folder = str(unit.source.parent)
        try:
            manifest = json.loads(self.entry("manifests", key, ".json").read_bytes())
            for recorded in reversed(manifest):
                headers = recorded["headers"]
                if all(self._digest_of(_resolve(path, folder)) == digest for path, digest in headers):
                    library = self.entry("libraries", recorded["key"], ".so")
                    if _is_intact(library):
                        return library, recorded["key"], headers
        except (OSError, ValueError, KeyError, TypeError):
            return None  # absent or damaged: compile again
        return None

    def _compiled(self, compiler: Compiler, key: str, unit: CompileUnit) -> tuple[Path, str, list]:
        folder = str(unit.source.parent)
        with _work_dir() as work:
            output, listing = work / "unit.so", work / "unit.d"
            command = [*compiler.command, *_unit_flags(compiler, unit), f"-fmacro-prefix-map={folder}/="]
            command += ["-MMD", "-MF", str(listing), "-shared", str(unit.source), "-o", str(output)]
            _run(command, unit.name or unit.source.name)
            headers = [
                (_portable(path, folder), self._digest_of(path) or "")
                for path in _read_dependencies(listing)
                if os.path.realpath(path) != os.path.realpath(unit.source)
            ]
            library_key = _digest(key, *(digest for _, digest in headers))
            library = self.entry("libraries", library_key, ".so")
            _publish(output, library)
        return library, library_key, headers

    def _record(self, key: str, library_key: str, headers: list) -> None:
        path = self.entry("manifests", key, ".json")
        try:
            manifest = [entry for entry in json.loads(path.read_bytes()) if entry["key"] != library_key]
        except (OSError, ValueError, KeyError, TypeError):
            manifest = []
        manifest.append({"key": library_key, "headers": headers})
        _write_atomically(path, json.dumps(manifest[-8:]).encode())

    def _unit_key(self, compiler: Compiler, unit: CompileUnit) -> str:
        digest = self._digest_of(str(unit.source))
        if digest is None:
            raise ToolchainError(f"source file not found: {unit.source}")
        return _digest(_CACHE_FORMAT, compiler.identity, digest, *_unit_flags(compiler, unit))

    def _digest_of(self, path: str) -> str | None:
        if path not in self._digests:
            try:
                self._digests[path] = _file_digest(Path(path))
            except OSError:
                self._digests[path] = None
        return self._digests[path]


def _base_flags(compiler: Compiler) -> tuple[str, ...]:
    return (*_BASE_FLAGS, *compiler.flags)


def _unit_flags(compiler: Compiler, unit: CompileUnit) -> tuple[str, ...]:
    flags = [*_base_flags(compiler), *unit.flags]
    flags += [f"-D{define}" for define in unit.defines]
    flags += [f"-I{directory}" for directory in unit.include_dirs]
    if unit.prelude is not None:
        flags += ["-include", str(unit.prelude)]
    return tuple(flags)


def _resolve(path: str, folder: str) -> str:
    return path if os.path.isabs(path) else os.path.join(folder, path)


def _portable(path: str, folder: str) -> str:
    """Headers beside the source are recorded relative to it: generated folders move."""
    return os.path.relpath(path, folder) if path.startswith(folder + os.sep) else os.path.abspath(path)


def _read_dependencies(listing: Path) -> list[str]:
    text = listing.read_text().replace("\\\n", " ")
    _, _, names = text.partition(": ")
    return [name.replace("\0", " ") for name in names.replace("\\ ", "\0").split()]


_FILE_DIGESTS: dict[str, tuple[tuple[int, int, int], str]] = {}


def _file_digest(path: Path) -> str:
    """SHA-256 of a file, remembered while its size and times stay the same."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
    name = os.fspath(path)
    known = _FILE_DIGESTS.get(name)
    if known is None or known[0] != stamp:
        known = (stamp, hashlib.sha256(path.read_bytes()).hexdigest())
        _FILE_DIGESTS[name] = known
    return known[1]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class _CacheRemovedError(Exception):
    """Somebody has removed the cache, or this part of it, while it was written to."""


@contextlib.contextmanager
def _work_dir() -> Iterator[Path]:
    """Scratch folder on the file system of the cache, so that a rename is atomic."""
    root = _made(cache_dir() / "work")
    # What killed processes left behind.
    for leftover in root.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _LEFTOVER_SECONDS:
                shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as name:
        try:
            yield Path(name)
        except (OSError, ToolchainError) as error:
            if os.path.exists(name):
                raise
            raise _CacheRemovedError from error


def _stored(write: Callable[[], _Result]) -> _Result:
    """What ``write`` puts into the cache. ToolchainError when the cache cannot be written."""
    reason = "it is removed again and again"
    try:
        for _ in range(5):
            with contextlib.suppress(_CacheRemovedError, FileNotFoundError):
                return write()
    except OSError as error:
        reason = error.strerror or str(error)
    raise ToolchainError(
        f"the compile cache {cache_dir()} cannot be written ({reason}); set PTO_CACHE_DIR to a folder that can"
    )


def _made(folder: Path) -> Path:
    """A folder of the cache, created if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _publish(output: Path, target: Path) -> None:
    """Put a library into the cache, then its digest: without a digest that fits the library counts as missing."""
    _made(target.parent)
    digest = hashlib.sha256(output.read_bytes()).hexdigest()
    os.replace(output, target)
    _write_atomically(target.with_suffix(_DIGEST_SUFFIX), digest.encode())


def _is_intact(library: Path) -> bool:
    try:
        return library.with_suffix(_DIGEST_SUFFIX).read_text() == _file_digest(library)
    except (OSError, UnicodeDecodeError):
        return False


def _write_atomically(target: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=_made(target.parent), prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _run(command: list[str], what: str) -> None:
    try:
        # Compilers quote sources, which may hold anything.
        result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    except OSError as error:
        raise ToolchainError(f"cannot run the compiler {command[0]} ({error.strerror})") from error
    if result.returncode != 0:
        said = (result.stderr or result.stdout).strip()
        status = f"exit status {result.returncode}"
        if result.returncode < 0:
            status = f"the compiler was ended by signal {-result.returncode}; is there enough memory?"
        raise ToolchainError(f"compiling {what} failed ({status}):\n{said}\ncommand: {' '.join(command)}")


def _parallel(function, items: list, jobs: int | None) -> list:
    if len(items) <= 1:
        return [function(item) for item in items]
    workers = min(len(items), jobs or len(os.sched_getaffinity(0)))
    with ThreadPoolExecutor(max_workers=workers) as pool:
        return list(pool.map(function, items))
