"""The command line: options, exit codes, diagnostics."""

from __future__ import annotations

import io

import pytest
from pto_text import ADD_KERNEL, TB, kernel
from ptoas_bridge.cli import main


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "k.pto"
    path.write_text(ADD_KERNEL)
    return path


LEVEL3 = ["--pto-level=level3"]


def test_writes_a_file_and_prints_nothing(source, tmp_path, capsys):
    out = tmp_path / "k.cpp"
    assert main([str(source), "-o", str(out), "--enable-insert-sync", *LEVEL3, "--pto-arch", "a3"]) == 0
    assert "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);" in out.read_text()
    assert capsys.readouterr() == ("", "")


def test_standard_input_and_output(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(ADD_KERNEL))
    assert main(["-", *LEVEL3]) == 0
    captured = capsys.readouterr().out
    assert "TADD(" in captured
    assert "set_flag(PIPE_MTE2" not in captured


def test_architecture_option_wins_over_the_module(tmp_path, capsys):
    text = kernel(f"  %t = pto.alloc_tile addr = %a0 : {TB}\n  pto.tabs ins(%t : {TB}) outs(%t : {TB})")
    left = "!pto.tile_buf<left, 32x32xf16, slayout=row_major>"
    text = text.replace("module {", 'module attributes {pto.target_arch = "a5"} {')
    text = text.replace(
        "  return", f"  %l = pto.alloc_tile addr = %a0 : {left}\n  pto.tprint ins(%l : {left})\n  return"
    )
    path = tmp_path / "k.pto"
    path.write_text(text)
    assert main([str(path), *LEVEL3]) == 0
    assert "Tile<TileType::Left, half, 32, 32, BLayout::ColMajor" in capsys.readouterr().out
    assert main([str(path), *LEVEL3, "--pto-arch", "a3"]) == 0
    assert "Tile<TileType::Left, half, 32, 32, BLayout::RowMajor" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--pto-arch=x"], "Error: invalid --pto-arch='x'. Expected 'a2', 'a3', or 'a5'."),
        (["--pto-level=x"], "Error: invalid --pto-level='x'. Expected 'level1', 'level2', or 'level3'."),
        (["--enable-insert-sync", "--enable-graph-sync-solver"], "are mutually exclusive."),
        (["--enable-graph-sync-solver"], "--enable-graph-sync-solver is not supported"),
        (["--pto-backend=vpto"], "--pto-backend=vpto is not supported"),
        (["--frobnicate"], "unknown option '--frobnicate'"),
    ],
)
def test_bad_options(source, capsys, options, text):
    assert main([str(source), *LEVEL3[: "level" not in str(options)], *options]) == 1
    assert text in capsys.readouterr().err


def test_parse_error_form(tmp_path, capsys):
    path = tmp_path / "k.pto"
    path.write_text(ADD_KERNEL.replace("pto.tadd ins", "pto.tfoo ins"))
    out = tmp_path / "k.cpp"
    assert main([str(path), "-o", str(out), *LEVEL3]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f'loc("{path}":')
    assert lines[0].endswith("error: custom op 'pto.tfoo' is unknown")
    assert lines[-1] == "Error: Failed to parse MLIR."
    assert not out.exists()


def test_level_rule_has_no_closing_line(tmp_path, capsys):
    path = tmp_path / "k.pto"
    path.write_text(kernel(f"  %t = pto.alloc_tile : {TB}"))
    assert main([str(path), *LEVEL3]) == 1
    assert "Error:" not in capsys.readouterr().err


def test_pass_failure_closing_line(tmp_path, capsys):
    big = "!pto.tile_buf<vec, 4096x64xf32>"
    path = tmp_path / "k.pto"
    path.write_text(kernel(f"  %t = pto.alloc_tile : {big}\n  pto.tabs ins(%t : {big}) outs(%t : {big})"))
    assert main([str(path)]) == 1
    captured = capsys.readouterr().err
    assert "vec overflow, requires 8388608 bits" in captured
    assert captured.rstrip().endswith("Error: Pass execution failed.")


def test_missing_and_binary_input(tmp_path, capsys):
    assert main([str(tmp_path / "none.pto")]) == 1
    assert "cannot open input file" in capsys.readouterr().err
    binary = tmp_path / "b.pto"
    binary.write_bytes(b"PTOBC\x01\x02")
    assert main([str(binary)]) == 1
    assert "PTOBC input is not supported" in capsys.readouterr().err


def test_barrier_mode(source, capsys):
    assert main([str(source), *LEVEL3, "--enable-inject-barrier-all-sync"]) == 0
    captured = capsys.readouterr().out
    body = captured[captured.index("AICORE void k") :]
    assert body.count("pipe_barrier(PIPE_ALL);") == 5
    assert "ptoas_auto_sync_tail(PTO" not in body


def test_ir_output_and_dumps(source, tmp_path, capsys):
    assert main([str(source), *LEVEL3, "--emit-pto-ir"]) == 0
    assert capsys.readouterr().out.startswith("module {")
    assert main([str(source), *LEVEL3, "--mlir-print-ir-after=lower_pipes"]) == 0
    assert capsys.readouterr().err.count("IR Dump After") == 1
    folder = tmp_path / "dumps"
    arguments = ["--mlir-print-ir-after-all", f"--mlir-print-ir-tree-dir={folder}"]
    assert main([str(source), *LEVEL3, *arguments]) == 0
    assert len(list(folder.iterdir())) == 5


def test_external_without_a_tool(source, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PTOAS_ROOT", str(tmp_path))
    assert main([str(source), "-o", str(tmp_path / "k.cpp"), "--external"]) == 1
    assert "no executable ptoas was found there" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit) as info:
        main(["--version"])
    assert info.value.code == 0
    assert capsys.readouterr().out.startswith("ptoas ")
