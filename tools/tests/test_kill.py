"""SIGKILL at any moment of a sync: local work is intact, and the next sync finishes without help.

``PTOWS_KILLS`` sets the number of kills at random moments (default 30; 200 for a long run).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import sys
import time

import pytest

KILLS = int(os.environ.get("PTOWS_KILLS", "30"))


def descendants(pid: int) -> list[int]:
    """Processes below ``pid``, found in /proc."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as stream:
                    parents[int(name)] = int(stream.read().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
    found, pending = [], [pid]
    while pending:
        children = [child for child, parent in parents.items() if parent == pending[0]]
        pending = pending[1:] + children
        found += children
    return found


class Scene:
    """Three entries: one to clone, one to move between two commits, one with local work."""

    def __init__(self, world) -> None:
        self.world = world
        files = {f"dir{i % 7}/file{i}.txt": f"old {i}\n" * 200 for i in range(120)}
        mover, self.old = world.remote("mover", files)
        changed = {name: text.replace("old", "new") for name, text in list(files.items())[:80]}
        removed = dict.fromkeys(list(files)[80:100])
        added = {f"more{i}/x.txt": f"added {i}\n" * 100 for i in range(40)}
        self.new = mover.commit({**changed, **removed, **added})
        _, self.fresh = world.remote("fresh", {f"f{i}.txt": f"{i}\n" * 300 for i in range(60)})
        _, self.mine = world.remote("mine", {"a.txt": "theirs\n"})
        self.pin(self.old)
        assert world.sync().code == 0
        (world.path("mine") / "a.txt").write_text("local work\n")
        (world.path("mine") / "note.txt").write_text("untracked\n")
        (world.path("mover") / "note.txt").write_text("untracked too\n")
        self.second_mine = world.remotes["mine"].commit({"a.txt": "theirs, later\n", "note.txt": "in the way\n"})
        self.at = self.old

    def pin(self, mover: str, mine: str = "") -> None:
        self.world.repos(fresh=self.fresh, mover=mover, mine=mine or self.mine)

    def prepare(self) -> None:
        """Everything to be done again, the other way round."""
        self.at = self.new if self.at == self.old else self.old
        shutil.rmtree(self.world.path("fresh"))
        self.pin(self.at, self.second_mine)

    def is_unfinished(self) -> bool:
        """Whether the kill left something to be finished in a checkout or beside it."""
        return bool(self.world.temporary()) or (self.world.path("mover") / ".git" / "ptows-move").exists()

    def check(self) -> None:
        """Local work intact; one sync finishes the rest."""
        world = self.world
        self.check_local_work()
        answer = world.sync()
        assert answer.code == 3, answer.err + answer.out
        assert world.head("fresh") == self.fresh and world.head("mover") == self.at
        assert world.git("mover", "status", "--porcelain") == "?? note.txt"
        assert world.git("fresh", "status", "--porcelain") == ""
        assert not world.temporary()
        assert not (world.path("mover") / ".git" / "ptows-move").exists()
        self.check_local_work()

    def check_local_work(self) -> None:
        world = self.world
        assert world.head("mine") == self.mine
        assert (world.path("mine") / "a.txt").read_text() == "local work\n"
        assert (world.path("mine") / "note.txt").read_text() == "untracked\n"
        assert (world.path("mover") / "note.txt").read_text() == "untracked too\n"


@pytest.fixture
def scene(world) -> Scene:
    return Scene(world)


def start_and_wait(scene: Scene):
    """A sync that has begun its work."""
    process = scene.world.start("sync", "--no-install")
    held = scene.world.root / ".ptows" / "sync.lock"
    while process.poll() is None and not held.stat().st_size:
        time.sleep(0.002)
    return process


def kill(process, with_children: bool) -> None:
    victims = descendants(process.pid) if with_children else []
    process.kill()
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.communicate()


def test_kills_at_random_moments(scene):
    random.seed(20)
    scene.prepare()
    process = start_and_wait(scene)
    started = time.monotonic()
    process.communicate()
    length = time.monotonic() - started
    interrupted = 0
    for number in range(KILLS):
        scene.prepare()
        process = start_and_wait(scene)
        time.sleep(random.uniform(0, length))
        kill(process, with_children=number % 2 == 0)
        interrupted += scene.is_unfinished()
        scene.check()
    # Otherwise the moments were badly chosen and the test shows nothing.
    assert interrupted >= KILLS // 10


WRAPPER = """#!{python} -S
import os, sys
count_file, target, mode = os.environ["KILL_COUNT"], int(os.environ["KILL_AT"]), os.environ["KILL_MODE"]
descriptor = os.open(count_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(descriptor, b".")
count = os.fstat(descriptor).st_size
os.close(descriptor)
parent = int(os.environ["KILL_PARENT_FILE"] and open(os.environ["KILL_PARENT_FILE"]).read() or 0)
if count == target and parent == os.getppid():
    os.kill(parent, 9)
    if mode == "both":
        os._exit(9)
os.execv("{git}", ["git", *sys.argv[1:]])
"""


def test_kills_at_every_start_of_git(scene, tmp_path, monkeypatch):
    """A sync dies with its n-th git: before that git runs (both), or while it goes on as an orphan (only ptows)."""
    folder = tmp_path / "bin"
    folder.mkdir()
    wrapper = folder / "git"
    wrapper.write_text(WRAPPER.format(python=sys.executable, git=shutil.which("git")))
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    ended = False
    number = 0
    while not ended:
        number += 1
        scene.prepare()
        counter, parent = tmp_path / "count", tmp_path / "parent"
        counter.unlink(missing_ok=True)
        parent.write_text("0")
        settings = {"KILL_COUNT": str(counter), "KILL_AT": str(number), "KILL_PARENT_FILE": str(parent)}
        settings |= {"KILL_MODE": "both" if number % 2 else "only ptows", "PATH": f"{folder}:{os.environ['PATH']}"}
        process = scene.world.start("sync", "--no-install", env={**os.environ, **settings})
        parent.write_text(str(process.pid))
        process.communicate()
        ended = process.returncode != -signal.SIGKILL
        scene.check()
    assert number > 10


def test_work_done_after_the_kill_is_not_taken_for_ours(scene):
    """A note of an unfinished move plus a file that is neither version: the user wrote it."""
    import json

    world = scene.world
    note = world.path("mover") / ".git" / "ptows-move"
    note.write_text(json.dumps({"before": scene.old, "after": scene.new}))
    (world.path("mover") / "dir0/file0.txt").write_text("written by the user\n")
    scene.pin(scene.new)
    answer = world.sync()
    assert answer.code == 3
    assert "mover: refused: files changed after an interrupted sync: 'dir0/file0.txt'" in answer.err
    assert (world.path("mover") / "dir0/file0.txt").read_text() == "written by the user\n"
    assert note.exists()
    world.git("mover", "checkout", "--", "dir0/file0.txt")
    assert world.sync().code == 3
    assert world.head("mover") == scene.new and not note.exists()


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "refs/remotes/origin/main.lock", "packed-refs.lock"])
def test_lock_files_of_a_killed_git_are_removed(scene, lock):
    import json

    world = scene.world
    note = world.path("mover") / ".git" / "ptows-move"
    note.write_text(json.dumps({"before": scene.old, "after": ""}))
    path = world.path("mover") / ".git" / lock
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    scene.pin(scene.new)
    world.sync()
    assert world.head("mover") == scene.new and not path.exists()
