"""Finding and running the public assembler, with recording stand-ins."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from ptoas_bridge import external, find_ptoas_binary, run_ptoas


def stand_in(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\nimport sys, pathlib\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize("name", ["ptoas", "ptoas.sh", "bin/ptoas"])
def test_root_is_searched_in_three_places(tmp_path, monkeypatch, name):
    tool = stand_in(tmp_path / name, "")
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path))
    assert find_ptoas_binary() == str(tool)


def test_root_hides_the_path(tmp_path, monkeypatch):
    stand_in(tmp_path / "on_path" / "ptoas", "")
    monkeypatch.setenv("PATH", str(tmp_path / "on_path"))
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path / "elsewhere"))
    assert find_ptoas_binary() is None
    with pytest.raises(FileNotFoundError, match=r"PTOAS_ROOT is set to .* Tried: "):
        run_ptoas("a.pto", "a.cpp")


def test_empty_root_uses_the_path(tmp_path, monkeypatch):
    tool = stand_in(tmp_path / "ptoas", "")
    monkeypatch.setenv("PTOAS_ROOT", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ptoas_binary() == str(tool)


def test_files_that_cannot_run_are_skipped(tmp_path, monkeypatch):
    (tmp_path / "ptoas").write_text("not executable")
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path))
    assert find_ptoas_binary() is None


def test_missing_everywhere(tmp_path, monkeypatch):
    monkeypatch.delenv("PTOAS_ROOT", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"ptoas binary not found\. Set PTOAS_ROOT"):
        run_ptoas("a.pto", "a.cpp")


def test_command_line(tmp_path, monkeypatch):
    record = tmp_path / "record"
    stand_in(tmp_path / "ptoas", f"pathlib.Path({str(record)!r}).write_text(' '.join(sys.argv[1:]))")
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path))
    run_ptoas("in.pto", "out.cpp", level="level2", arch="a5", extra_flags=["--x"])
    assert record.read_text() == "in.pto -o out.cpp --enable-insert-sync --pto-level=level2 --x --pto-arch a5"


def test_dump_flags_are_retried_without_module_scope(tmp_path, monkeypatch):
    record = tmp_path / "record"
    stand_in(
        tmp_path / "ptoas",
        "if '--mlir-print-ir-module-scope' in sys.argv:\n"
        '    sys.exit("IR print for module scope can\'t be setup")\n'
        f"pathlib.Path({str(record)!r}).write_text(' '.join(sys.argv[1:]))",
    )
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path))
    run_ptoas("in.pto", "out.cpp", dump_dir=tmp_path / "dumps")
    assert (tmp_path / "dumps").is_dir()
    assert "--mlir-print-ir-after-all" in record.read_text()
    assert "module-scope" not in record.read_text()


def test_failure_and_timeout(tmp_path, monkeypatch):
    stand_in(tmp_path / "ptoas", "sys.exit('bad input')")
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"^ptoas compilation failed: bad input$"):
        run_ptoas("in.pto", "out.cpp")
    stand_in(tmp_path / "ptoas", "import time; time.sleep(30)")
    monkeypatch.setattr(external, "TIMEOUT_SECONDS", 0.2)
    with pytest.raises(RuntimeError, match="timed out after"):
        run_ptoas("in.pto", "out.cpp")
