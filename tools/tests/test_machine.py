"""What concerns the machine: doctor, caches, the review scripts."""

from __future__ import annotations


def test_doctor_compiles_a_program_and_names_what_is_missing(five, monkeypatch, tmp_path):
    answer = five.run("doctor", "--json")
    checks = {item["name"]: item for item in answer.json["checks"]}
    assert {"python", "git", "c++", "torch", "ptoas", "nox", "docker", "gh", "codex", "disk", "manifest"} <= set(checks)
    assert checks["git"]["verdict"] == "ok"
    assert all(item["fix"] for item in checks.values() if item["verdict"] != "ok")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    answer = five.run("doctor", "--json")
    assert answer.code == 1
    checks = {item["name"]: item for item in answer.json["checks"]}
    assert checks["git"]["verdict"] == "fail" and checks["docker"]["verdict"] == "warn"


def test_a_compiler_that_does_not_work_is_found_out(tmp_path, monkeypatch):
    from ptows.doctor.compiler import compile_and_run, probe_compiler
    from ptows.manifest import Tool

    broken = tmp_path / "broken++"
    broken.write_text("#!/bin/sh\necho 'broken++: cannot compile' >&2\nexit 1\n")
    broken.chmod(0o755)
    assert compile_and_run([str(broken)], 17) == "broken++: cannot compile"
    monkeypatch.setenv("CXX", str(broken))
    check = probe_compiler(Tool("cxx", candidates=("none++",)), lambda name: None)
    assert check.verdict == "fail" and "cannot compile" in check.found and check.fix


def test_clean_lists_and_removes_only_what_is_asked_for_and_ignored(five):
    for name in ("pypto/build", "ptows/__pycache__", ".nox"):
        (five.root / name).mkdir()
        (five.root / name / "x").write_bytes(b"x" * 2048)
    (five.root / "pypto_lib" / "dist").mkdir()
    (five.root / "pypto_lib" / "dist" / "source.py").write_text("not ignored")
    (five.root / ".ptows" / "store").mkdir(parents=True)
    listed = five.run("clean", "--json").json
    assert {item["path"] for item in listed["caches"]} == {"pypto/build", "ptows/__pycache__", ".nox", ".ptows/store"}
    assert not listed["removed"] and (five.root / "pypto" / "build").exists()
    refused = five.run("clean", "--builds")
    assert refused.code == 2 and "--yes" in refused.err and (five.root / "pypto" / "build").exists()
    assert five.run("clean", "--builds", "--yes").code == 0
    assert not (five.root / "pypto" / "build").exists() and not (five.root / ".nox").exists()
    assert (five.root / ".ptows" / "store").exists() and (five.root / "pypto_lib" / "dist").exists()
    assert five.run("clean", "--store", "-y").code == 0 and not (five.root / ".ptows" / "store").exists()


def test_review_hands_everything_to_the_script(five):
    folder = five.root / ".github" / "scripts"
    folder.mkdir(parents=True)
    (folder / "publish_codex_review.py").write_text("import sys\nprint(sys.argv[1:])\nsys.exit(4)\n")
    answer = five.process("review", "publish", "--json", "-v", "--workspace", "x", "--help")
    assert answer.code == 4 and answer.out == "['--json', '-v', '--workspace', 'x', '--help']\n"


def test_review_without_the_script_says_what_is_missing(five):
    answer = five.run("review", "simulate")
    assert answer.code == 1 and ".github/scripts/simulate.py" in answer.err
    wrong = five.run("review", "publsh")
    assert wrong.code == 2 and "did you mean 'publish'?" in wrong.err
    assert "prepare" in five.run("review").out
