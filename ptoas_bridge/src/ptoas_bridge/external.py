"""The real `ptoas`: where to find it and how to run it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

TIMEOUT_SECONDS = 60
_MODULE_SCOPE = "--mlir-print-ir-module-scope"


def _candidates(root: str) -> list[Path]:
    base = Path(root)
    return [base / "ptoas", base / "ptoas.sh", base / "bin" / "ptoas"]


def find_ptoas_binary(environ: Mapping[str, str] | None = None) -> str | None:
    """Path of the public assembler, or None.

    With `PTOAS_ROOT` set and not empty only that folder is searched (`ptoas`, `ptoas.sh`, `bin/ptoas`), never the PATH.
    """
    environ = os.environ if environ is None else environ
    root = environ.get("PTOAS_ROOT", "")
    if root:
        for path in _candidates(root):
            if path.is_file() and os.access(path, os.X_OK):
                return str(path)
        return None
    return shutil.which("ptoas", path=environ.get("PATH"))


def require_ptoas_binary() -> str:
    """Like `find_ptoas_binary`, but a missing tool is a FileNotFoundError that says where it was looked for."""
    found = find_ptoas_binary()
    if found is not None:
        return found
    root = os.environ.get("PTOAS_ROOT", "")
    if root:
        tried = ", ".join(str(path) for path in _candidates(root))
        raise FileNotFoundError(
            f"PTOAS_ROOT is set to '{root}' but no executable ptoas was found there. Tried: {tried}"
        )
    raise FileNotFoundError(
        "ptoas binary not found. Set PTOAS_ROOT to the folder of the tool, or put 'ptoas' on the PATH."
    )


def run_ptoas(
    input_path: str | Path,
    output_path: str | Path,
    *,
    level: str = "level3",
    arch: str | None = None,
    extra_flags: Sequence[str] = (),
    enable_insert_sync: bool = True,
    dump_dir: str | Path | None = None,
) -> None:
    """Assemble a file with the public tool.

    Raises FileNotFoundError when the tool is missing, RuntimeError when it fails or runs longer than 60 s.
    `extra_flags` come last, followed by `--pto-arch` when `arch` is given.
    """
    command = [require_ptoas_binary(), str(input_path), "-o", str(output_path)]
    if enable_insert_sync:
        command.append("--enable-insert-sync")
    command.append(f"--pto-level={level}")
    if dump_dir is not None:
        Path(dump_dir).mkdir(parents=True, exist_ok=True)
        command += ["--mlir-print-ir-after-all", _MODULE_SCOPE, f"--mlir-print-ir-tree-dir={dump_dir}"]
    command += extra_flags
    if arch is not None:
        command += ["--pto-arch", arch]
    result = _run(command)
    if result.returncode != 0 and _MODULE_SCOPE in command and "module scope" in result.stderr:
        # Version 0.60 refuses this flag in its multi-threaded pass manager.
        result = _run([word for word in command if word != _MODULE_SCOPE])
    if result.returncode != 0:
        raise RuntimeError(f"ptoas compilation failed: {result.stderr.strip()}")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"ptoas compilation timed out after {TIMEOUT_SECONDS}s") from None
