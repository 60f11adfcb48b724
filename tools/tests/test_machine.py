"""What concerns the machine: doctor, caches, the review scripts."""

from __future__ import annotations

import venv


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


def test_doctor_is_not_misled_by_what_a_failing_command_prints(tmp_path):
    from ptows.doctor.checks import version_of

    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho 'File /usr/lib/python3.11/x.py: no such module' >&2\nexit 1\n")
    tool.chmod(0o755)
    assert version_of([str(tool)]) == "" and version_of([str(tmp_path / "none")]) == ""


def test_doctor_looks_for_torch_where_the_packages_go(five, tmp_path, monkeypatch):
    environment = tmp_path / "env"
    venv.create(environment, with_pip=False)
    monkeypatch.setenv("VIRTUAL_ENV", str(environment))
    packages = next((environment / "lib").glob("python3*")) / "site-packages"

    def torch():
        return next(item for item in five.run("doctor", "--json").json["checks"] if item["name"] == "torch")

    def install(name: str, version: str) -> None:
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")

    assert torch()["verdict"] == "warn" and torch()["fix"] == "ptows sync"
    for name in ("ptoas_bridge", "simpler_runtime", "pypto", "pypto_lib", "ptows"):
        install(name, "0.1.0")
    assert torch()["verdict"] == "fail" and torch()["fix"] == "pip install torch"
    (five.root / "constraints.txt").write_text("# pins\ntorch==2.13.0  # here\n")
    assert torch()["fix"] == "pip install -c constraints.txt torch"
    install("torch", "2.12.1+cpu")
    assert torch()["verdict"] == "warn" and torch()["found"] == "2.12.1; constraints.txt says 2.13.0"
    (five.root / "constraints.txt").write_text("torch==2.12.1\n")
    assert torch()["verdict"] == "ok"


def test_clean_knows_the_compile_cache_and_nothing_else_in_its_folder(five, tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    for name in ("programs", "libraries", "photos"):
        (cache / name).mkdir(parents=True)
        (cache / name / "x").write_bytes(b"x" * 1024)
    monkeypatch.setenv("PTO_CACHE_DIR", str(cache))
    assert str(cache / "programs") in {item["path"] for item in five.run("clean", "--json").json["caches"]}
    assert five.run("clean", "--builds", "--yes").code == 0 and (cache / "programs").exists()
    assert five.run("clean", "--store", "--yes").code == 0
    assert [path.name for path in cache.iterdir()] == ["photos"]


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
