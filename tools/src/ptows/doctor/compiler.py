"""Finding a C++ compiler the way the runtime does, and proving that it compiles a program that runs."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ptows.manifest import Tool

if TYPE_CHECKING:
    from ptows.doctor.checks import Check

_PROBE = """#include <array>
#include <cstdio>
#include <optional>
#include <thread>
int main() {
    std::optional<int> value;
    std::thread([&] { value = std::array<int, 2>{40, 2}[0] + 2; }).join();
    std::printf("%d", *value);
}
"""


def candidates(tool: Tool, which: Callable[[str], str | None]) -> list[list[str]]:
    """Compiler commands to try: $CXX first, then those of the manifest."""
    found = [shlex.split(os.environ["CXX"])] if os.environ.get("CXX", "").strip() else []
    for name in tool.candidates or ("c++", "g++", "clang++", "ziglang"):
        if name == "ziglang":
            if importlib.util.find_spec("ziglang") is not None:
                found.append([sys.executable, "-m", "ziglang", "c++"])
        elif (path := which(name)) is not None:
            found.append([path])
    return found


def probe_compiler(tool: Tool, which: Callable[[str], str | None]) -> Check:
    """Compiles and runs a small program with the first compiler that can."""
    from ptows.doctor.checks import FAIL, OK, WARN, Check, version_of

    standard = tool.standard or 17
    failures = []
    for command in candidates(tool, which):
        reason = compile_and_run(command, standard)
        if not reason:
            version = version_of([*command, "--version"])
            return Check("c++", OK, f"{' '.join(command)} {version} compiles and runs C++{standard}")
        failures.append(f"{' '.join(command)}: {reason}")
    fix = "install one (apt install g++), or pip install ziglang"
    return Check("c++", WARN if tool.optional else FAIL, "; ".join(failures) or "no compiler found", fix)


def compile_and_run(command: list[str], standard: int) -> str:
    """Why the probe program does not work; "" when it does."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "probe.cpp"), Path(folder, "probe")
        source.write_text(_PROBE, encoding="utf-8")
        arguments = [*command, f"-std=c++{standard}", "-pthread", str(source), "-o", str(program)]
        try:
            done = subprocess.run(arguments, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
            if done.returncode:
                lines = (done.stderr or done.stdout).strip().splitlines()
                return lines[0] if lines else f"ended with {done.returncode}"
            ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        return "" if ran.stdout == "42" else "the compiled program gives a wrong answer"
