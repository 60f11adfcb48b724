"""Command line `ptoas-bridge`: the public options of `ptoas`, plus `--external` to run the real tool."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .errors import AssemblerError, UnsupportedFeatureError

_SYNC_MODES = (
    "enable_insert_sync", "enable_bufid_sync", "enable_inject_barrier_all_sync", "enable_graph_sync_solver",
)  # fmt: skip
_UNSUPPORTED = {
    "enable_bufid_sync": "--enable-bufid_sync (buffer-id synchronisation)",
    "enable_graph_sync_solver": "--enable-graph-sync-solver",
}


class CommandError(Exception):
    """A message for stderr; the command ends with exit code 1."""


def build_parser() -> argparse.ArgumentParser:
    """The options of `ptoas` this assembler knows; unknown ones are refused."""
    parser = argparse.ArgumentParser(prog="ptoas-bridge", description="Assemble .pto text to kernel C++.")
    parser.add_argument("input", help="input file, or - for standard input")
    parser.add_argument("-o", dest="output", default="-", metavar="FILE", help="output file (default: standard output)")
    parser.add_argument("--pto-arch", metavar="ARCH", help="a2, a3 or a5 (default: the module's own, else a3)")
    parser.add_argument("--pto-level", default="level2", metavar="LEVEL", help="level1, level2 (default) or level3")
    sync = parser.add_argument_group("synchronisation, at most one of")
    sync.add_argument("--enable-insert-sync", action="store_true", help="insert flags and barriers")
    sync.add_argument(
        "--enable-inject-barrier-all-sync", action="store_true", help="a full barrier before each pipe op"
    )
    sync.add_argument("--enable-bufid_sync", "--enable-bufid-sync", action="store_true", help=argparse.SUPPRESS)
    sync.add_argument("--enable-graph-sync-solver", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--emit-pto-ir", action="store_true", help="print the program after the passes instead of C++")
    parser.add_argument("--pto-backend", default="emitc", help=argparse.SUPPRESS)
    parser.add_argument("--mlir-print-ir-after-all", action="store_true", help="print the program after each pass")
    parser.add_argument("--mlir-print-ir-after", metavar="PASS", action="append", default=[], help="... after PASS")
    parser.add_argument("--mlir-print-ir-tree-dir", metavar="DIR", help="write those dumps into DIR instead of stderr")
    parser.add_argument("--external", action="store_true", help="run the real ptoas (PTOAS_ROOT or PATH) instead")
    parser.add_argument("--version", action="version", version=f"ptoas {_version()}")
    return parser


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ptoas-bridge")
    except PackageNotFoundError:
        return "0.0.0"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code (0 on success, 1 with text on stderr otherwise)."""
    parser = build_parser()
    options, extra = parser.parse_known_args(arguments)
    try:
        if options.external:
            _run_external(options, extra)
            return 0
        if extra:
            raise CommandError(f"Error: unknown option '{extra[0]}'.")
        _check(options)
        _run(options)
    except CommandError as problem:
        print(problem, file=sys.stderr)
        return 1
    except AssemblerError as problem:
        print(_diagnostic(problem), file=sys.stderr)
        return 1
    except (UnsupportedFeatureError, FileNotFoundError, RuntimeError) as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 1
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.pto_arch is not None and options.pto_arch.lower() not in ("a2", "a3", "a2a3", "a5"):
        raise CommandError(f"Error: invalid --pto-arch='{options.pto_arch}'. Expected 'a2', 'a3', or 'a5'.")
    if options.pto_level not in ("level1", "level2", "level3"):
        raise CommandError(
            f"Error: invalid --pto-level='{options.pto_level}'. Expected 'level1', 'level2', or 'level3'."
        )
    if sum(getattr(options, mode) for mode in _SYNC_MODES) > 1:
        raise CommandError(
            "Error: --enable-insert-sync, --enable-bufid_sync, --enable-inject-barrier-all-sync, and "
            "--enable-graph-sync-solver are mutually exclusive."
        )
    for mode, name in _UNSUPPORTED.items():
        if getattr(options, mode):
            raise UnsupportedFeatureError(f"{name} is not supported; use --enable-insert-sync, or --external")
    if options.pto_backend != "emitc":
        raise UnsupportedFeatureError(f"--pto-backend={options.pto_backend} is not supported, only emitc is")


def _run(options: argparse.Namespace) -> None:
    from .assembler import pipeline
    from .dialect.printer import print_module, write_dump
    from .emit import emit_module
    from .parser import parse_module

    text = sys.stdin.read() if options.input == "-" else _read(options.input)
    filename = "<stdin>" if options.input == "-" else options.input
    module = parse_module(text, arch=options.pto_arch, filename=filename)
    sync = "insert" if options.enable_insert_sync else "barriers" if options.enable_inject_barrier_all_sync else "none"
    for name, step in pipeline(options.pto_level, sync):
        step(module)
        if options.mlir_print_ir_after_all or name in options.mlir_print_ir_after:
            if options.mlir_print_ir_tree_dir:
                write_dump(module, Path(options.mlir_print_ir_tree_dir), name)
            else:
                print(f"// -----// IR Dump After {name} //----- //\n{print_module(module)}", file=sys.stderr)
    result = print_module(module) if options.emit_pto_ir else emit_module(module)
    if options.output == "-":
        sys.stdout.write(result)
    else:
        Path(options.output).write_text(result)


def _read(path: str) -> str:
    try:
        data = Path(path).read_bytes()
    except OSError as problem:
        raise CommandError(f"Error: cannot open input file '{path}': {problem.strerror}") from None
    if data[:5].upper() == b"PTOBC":
        raise UnsupportedFeatureError("binary PTOBC input is not supported; give the text form")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise CommandError(f"Error: '{path}' is not UTF-8 text") from None


def _diagnostic(problem: AssemblerError) -> str:
    """The public one-line form, the source line for people, and the closing line of the failed stage."""
    if problem.stage == "options":
        return f"Error: {problem.message}"
    lines = [problem.mlir_diagnostic(), *problem.render().splitlines()[1:]]
    closing = {"parse": "Error: Failed to parse MLIR.", "pass": "Error: Pass execution failed."}.get(problem.stage)
    return "\n".join([*lines, closing] if closing else lines)


def _run_external(options: argparse.Namespace, extra: list[str]) -> None:
    from .external import run_ptoas

    if options.input == "-" or options.output == "-":
        raise CommandError("Error: --external needs an input file and -o FILE")
    run_ptoas(
        options.input, options.output, level=options.pto_level, arch=options.pto_arch, extra_flags=extra,
        enable_insert_sync=options.enable_insert_sync, dump_dir=options.mlir_print_ir_tree_dir,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
