"""Two at once, full and read-only disks, jumping clocks, odd names, many entries, damaged state."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time

import pytest


def test_two_syncs_at_once_take_turns(world):
    revs = {}
    for number in range(4):
        _, revs[f"r{number}"] = world.remote(f"r{number}", {f"f{i}": f"{i}\n" * 100 for i in range(20)})
    world.repos(**revs)
    processes = [world.start("sync", "--no-install") for _ in range(3)]
    answers = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], answers
    for name, rev in revs.items():
        assert world.head(name) == rev and world.git(name, "status", "--porcelain") == ""
    assert not world.temporary()


def test_the_holder_of_the_workspace_is_named(world):
    from ptows.errors import PtowsError
    from ptows.sync.holding import holding

    said = []
    holder = f"synchronised by pid {os.getpid()} on "
    with (
        holding(world.root),
        pytest.raises(PtowsError, match=holder),
        holding(world.root, wait=0.15, say=said.append),
    ):
        pass
    assert said[0].startswith("waiting for the ptows that holds the workspace: pid ")


def test_the_lock_of_a_dead_process_is_taken_over(world):
    from ptows.sync.holding import holding

    with holding(world.root):
        pass
    (world.root / ".ptows" / "sync.lock").write_text(json.dumps({"pid": 999999999, "host": "gone"}))
    said = []
    with holding(world.root, say=said.append):
        assert said == ["taking over the stale lock of pid 999999999 on gone"]
    world.manifest("workspace: 1\nname: t\n")
    assert world.sync().code == 0


def mount(kind: str, folder, options: str) -> bool:
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", kind, "-o", options, kind, str(folder)], capture_output=True)
    return done.returncode == 0


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1.5 MB."""
    folder = tmp_path / "small"
    if not mount("tmpfs", folder, "size=1500k"):
        pytest.skip("mounting a tmpfs is not permitted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def noise(count: int, size: int, seed: int = 1) -> dict[str, str]:
    maker = random.Random(seed)
    return {f"f{i}": maker.randbytes(size).hex() for i in range(count)}


def test_a_full_disk_fails_the_entry_and_leaves_nothing_behind(world, small_disk):
    _, small = world.remote("small", {"a.txt": "x\n"})
    _, large = world.remote("large", noise(60, 20000))
    world.repos(small=small, large=large)
    manifest = (world.root / "workspace.yaml").read_text()
    world.root = small_disk
    world.manifest(manifest)
    answer = world.sync()
    assert answer.code == 1, answer.err
    assert "large: failed: " in answer.err and "no space left" in answer.err
    assert world.head("small") == small
    assert not world.path("large").exists() and not world.temporary()


def test_a_move_that_runs_out_of_disk_is_finished_later(world, small_disk):
    remote, first = world.remote("alpha", {"a.txt": "x\n"})
    files = noise(14, 30000)
    second = remote.commit(files)
    world.repos(alpha=first)
    manifest = (world.root / "workspace.yaml").read_text()
    world.root = small_disk
    world.manifest(manifest)
    assert world.sync().code == 0
    (world.path("alpha") / "mine.txt").write_text("untracked\n")
    filler = small_disk / "filler"
    free = shutil.disk_usage(small_disk).free
    filler.write_bytes(b"x" * max(0, free - 300_000))
    world.repos(alpha=second)
    answer = world.sync()
    assert answer.code == 1 and "alpha: failed: " in answer.err
    filler.unlink()
    answer = world.sync()
    assert answer.code == 0, answer.err
    assert world.head("alpha") == second
    assert world.git("alpha", "status", "--porcelain") == "?? mine.txt"
    assert "nothing to do" in world.sync().out


def test_a_read_only_workspace_says_so(world, tmp_path):
    folder = tmp_path / "readonly"
    if not mount("tmpfs", folder, "size=1m"):
        pytest.skip("mounting a tmpfs is not permitted here")
    try:
        _, first = world.remote("alpha")
        world.repos(alpha=first)
        shutil.copy(world.root / "workspace.yaml", folder)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        world.root = folder
        answer = world.sync()
        assert answer.code == 1
        assert "Read-only file system" in answer.err and "must be writable" in answer.err
        assert world.run("list").code == 0 and world.run("status", "--json").code == 0
        assert world.sync("--dry-run").code == 0
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind the superuser")
def test_a_folder_without_write_permission_fails_only_its_entry(world):
    _, first = world.remote("alpha")
    _, other = world.remote("beta")
    (world.root / "closed").mkdir(mode=0o555)
    url = world.remotes["alpha"].url
    world.manifest(
        f'workspace: 1\nname: t\nrepos:\n  alpha: {{url: "{url}", rev: "{first}", path: closed/alpha}}\n'
        f'  beta: {{url: "{world.remotes["beta"].url}", rev: "{other}", path: beta}}\n'
    )
    answer = world.sync()
    assert answer.code == 1 and "alpha: failed" in answer.err
    assert world.head("beta") == other


@pytest.mark.parametrize("years", [-30, 30])
def test_a_clock_that_jumps_changes_nothing(world, years):
    remote, first = world.remote("alpha", noise(10, 100))
    world.repos(alpha=first)
    assert world.sync().code == 0
    moment = time.time() + years * 365 * 86400
    for path in [*world.path("alpha").glob("f*"), world.root / "workspace.yaml", world.root / "workspace.lock"]:
        os.utime(path, (moment, moment))
    os.utime(world.path("alpha") / ".git" / "index", (moment, moment))
    assert "nothing to do" in world.sync().out
    (world.path("alpha") / "f0").write_text("mine\n")
    os.utime(world.path("alpha") / "f0", (moment, moment))
    assert world.sync().code == 3
    world.git("alpha", "checkout", "--", "f0")
    world.repos(alpha=remote.commit(noise(10, 100, 2)))
    assert world.sync().code == 0


@pytest.mark.parametrize(
    "name",
    [
        "with space",
        "ünïcodé",
        "中文 路径",
        "quote's",
        "per%cent",
        "hash#mark",
        "dollar$HOME",
        "star*glob",
        "bracket[0]",
        "semi;colon",
        "amp&and",
        "-dash",
        "--force",
        "emoji🙂",
        "a/b/c/deep one",
        ".hidden",
        "trailing.",
        "tab_\u00a0_nbsp",
    ],
)
def test_odd_names_of_folders_and_files(world, name):
    files = {f"{name.strip('/')}/{name.rsplit('/')[-1]} file": "x\n"}
    remote, first = world.remote("alpha", files)
    quoted = json.dumps(name, ensure_ascii=False)

    def write(rev: str) -> None:
        url = world.remotes["alpha"].url
        world.manifest(f'workspace: 1\nname: t\nrepos:\n  alpha: {{url: "{url}", rev: "{rev}", path: {quoted}}}\n')

    write(first)
    answer = world.sync()
    assert answer.code == 0, answer.err
    assert world.head(name) == first
    write(remote.commit({"second": "x\n"}))
    assert world.sync().code == 0
    assert world.run("status", "--json").json["entries"][0]["state"] == "ok"
    (world.path(name) / next(iter(files))).write_text("mine\n")
    assert world.sync().code == 3
    listed = world.run("diff", "--json").json["entries"][0]["files"]
    assert listed == [{"status": "M", "name": next(iter(files))}]


def test_a_workspace_in_a_folder_with_an_odd_name(world):
    folder = world.root.with_name("a ünusual [name] $x")
    world.root = world.root.rename(folder)
    _, first = world.remote("alpha")
    world.repos(alpha=first)
    assert world.sync().code == 0 and world.head("alpha") == first


def test_a_path_with_a_newline_is_refused(world):
    world.manifest('workspace: 1\nname: t\nrepos:\n  a: {url: "file:///x", rev: main, path: "two\\nlines"}\n')
    answer = world.sync()
    assert answer.code == 2 and "control character" in answer.err


def test_two_hundred_entries(world):
    _, first = world.remote("alpha")
    url = world.remotes["alpha"].url
    lines = [f'  e{i:03}: {{url: "{url}", rev: "{first}", path: many/e{i:03}}}' for i in range(200)]
    world.manifest("workspace: 1\nname: t\nrepos:\n" + "\n".join(lines) + "\n")
    assert world.sync().code == 0
    assert len(list((world.root / "many").iterdir())) == 200
    (world.root / "many" / "e117" / "a.txt").write_text("mine\n")
    answer = world.sync("--json")
    assert answer.code == 3
    assert [e["name"] for e in answer.json["entries"] if e["state"] == "refused"] == ["e117"]
    assert len(world.run("status", "--json").json["entries"]) == 200


@pytest.mark.parametrize(
    "damage", ["", "not json", "{}", '{"lock": 1, "entries": []}', "[1]", '{"lock": 1, "entries": {"a": 1}}']
)
def test_a_damaged_lock_is_named(world, damage):
    world.manifest("workspace: 1\nname: t\n")
    (world.root / "workspace.lock").write_text(damage)
    answer = world.sync()
    assert answer.code == 1 and "workspace.lock is damaged" in answer.err and "ptows lock" in answer.err


def test_a_newer_lock_is_named(world):
    world.manifest("workspace: 1\nname: t\n")
    (world.root / "workspace.lock").write_text('{"lock": 9, "entries": {}}')
    answer = world.sync()
    assert answer.code == 1 and "schema 9" in answer.err and "upgrade ptows" in answer.err


def test_a_broken_checkout_fails_alone(world):
    _, first = world.remote("alpha")
    _, other = world.remote("beta")
    world.repos(alpha=first, beta=other)
    world.sync()
    (world.path("alpha") / ".git" / "HEAD").write_text("garbage\n")
    shutil.rmtree(world.path("beta"))
    answer = world.sync()
    assert answer.code == 1 and "alpha: failed" in answer.err
    assert world.head("beta") == other
    assert world.run("status", "--json").json["entries"][0]["state"] == "error"


def test_settings_in_the_environment_do_not_redirect_git(world, monkeypatch):
    _, first = world.remote("alpha")
    world.repos(alpha=first)
    for key in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(key, str(world.folder / "elsewhere"))
    assert world.sync().code == 0
    assert not (world.folder / "elsewhere").exists()
    monkeypatch.undo()
    assert world.head("alpha") == first
