"""List, filter and export the arguments of an args dump.

python -m simpler_setup.tools.dump_viewer [FOLDER] [--task ID] [--stage before|after] [--role ROLE] [--export]
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from pathlib import Path
from typing import Any

_FORMATS = {
    "float32": "f", "int32": "i", "int16": "h", "int8": "b", "uint8": "B", "int64": "q", "uint64": "Q", "uint16": "H",
    "uint32": "I", "bool": "?", "float16": "e", "bfloat16": "H", "fp8e4m3fn": "B", "fp8e8m0": "B", "fp4e2m1": "B",
}  # fmt: skip


def read_arg_data(bin_path: str | Path, offset: int, size: int) -> bytes:
    """The bytes of one argument."""
    with open(bin_path, "rb") as file:
        file.seek(offset)
        return file.read(size)


def decode_elements(data: bytes, dtype: str, count: int) -> list[Any]:
    """The first ``count`` elements as Python numbers; small floats without a Python type as their bit patterns."""
    code = _FORMATS[dtype.lower()]
    values = list(struct.unpack_from(f"<{min(count, len(data) // struct.calcsize(code))}{code}", data))
    if dtype.lower() == "bfloat16":
        return [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in values]
    return values


def load(folder: Path) -> dict[str, Any]:
    """The manifest of a dump folder."""
    return json.loads((folder / "args_dump.json").read_text())


def select(manifest: dict[str, Any], options: argparse.Namespace) -> list[tuple[int, dict[str, Any]]]:
    """The entries that match the filters, with their manifest index."""
    stage = {"before": "before_dispatch", "after": "after_completion", None: None}[options.stage]
    return [
        (index, entry)
        for index, entry in enumerate(manifest["args"])
        if (options.task is None or int(entry["task_id"], 16) == int(options.task, 0))
        and (stage is None or entry["stage"] == stage)
        and (options.role is None or entry["role"] == options.role)
        and (options.index is None or index == options.index)
    ]


def export(folder: Path, index: int, entry: dict[str, Any]) -> Path:
    """Writes one argument as text: a header, then one line per element with its indices."""
    data = read_arg_data(folder / "args.bin", entry["bin_offset"], entry["bin_size"]) if entry["bin_size"] else b""
    total = 1
    for extent in entry["shape"]:
        total *= extent
    lines = [f"# {key}: {entry[key]}" for key in ("task_id", "func_id", "role", "stage", "arg_index", "dtype", "shape")]
    for position, value in enumerate(decode_elements(data, entry["dtype"], total)):
        place, rest = [], position
        for extent in reversed(entry["shape"]):
            place.append(rest % extent)
            rest //= extent
        lines.append(f"[{', '.join(map(str, reversed(place)))}] {value!r}")
    target = folder / f"arg_{index}_{entry['stage']}_{entry['role']}{entry['arg_index']}.txt"
    target.write_text("\n".join(lines) + "\n")
    return target


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="List, filter and export the arguments of an args dump.")
    parser.add_argument(
        "folder", nargs="?", type=Path, help="args_dump folder; default: the newest outputs/*/args_dump"
    )
    parser.add_argument("--task", help="task id, e.g. 0x200000001")
    parser.add_argument("--stage", choices=["before", "after"])
    parser.add_argument("--role", choices=["input", "output", "inout"])
    parser.add_argument("--index", type=int, help="one entry by its manifest index (exports it)")
    parser.add_argument("--export", action="store_true", help="write the matching arguments as text files")
    options = parser.parse_args(argv)
    folder = options.folder
    if folder is None:
        found = sorted(Path("outputs").glob("*/args_dump"), key=lambda path: path.stat().st_mtime)
        if not found:
            parser.error("no outputs/*/args_dump here: name the folder")
        folder = found[-1]
    entries = select(load(folder), options)
    for index, entry in entries:
        value = entry.get("value", "")
        print(
            f"{index:5} {entry['task_id']} func {entry['func_id']} {entry['stage']:16} {entry['role']:6} "
            f"arg {entry['arg_index']} {entry['dtype']} {entry['shape']} {value}"
        )
        if (options.export or options.index is not None) and entry["kind"] == "tensor":
            print(f"      -> {export(folder, index, entry)}")
    return 0 if entries else 1


if __name__ == "__main__":
    sys.exit(main())
