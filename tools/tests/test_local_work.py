"""Local work in a checkout: the entry stays exactly as it is, the rest is synchronised, the exit code is 3."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file of a checkout and the parts of its git folder that hold the user's state."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith((".git/objects", ".git/logs/refs/remotes")):
            found[name] = path.read_bytes()
    return found


def write(world, name: str, text: str) -> None:
    (world.path("mine") / name).write_text(text)


def dirty(world):
    write(world, "a.txt", "edited\n")


def staged(world):
    write(world, "a.txt", "edited\n")
    world.git("mine", "add", "a.txt")


def staged_new_file(world):
    write(world, "mine.txt", "mine\n")
    world.git("mine", "add", "mine.txt")


def staged_then_restored(world):
    staged(world)
    write(world, "a.txt", "mine\n")


def deleted(world):
    (world.path("mine") / "a.txt").unlink()


def mode_changed(world):
    (world.path("mine") / "a.txt").chmod(0o755)


def stash(world):
    dirty(world)
    world.git("mine", "stash")


def detached_commit(world):
    dirty(world)
    world.git("mine", "commit", "-qam", "local")


def branch_commit(world):
    world.git("mine", "checkout", "-qb", "feature")
    detached_commit(world)


def commit_on_another_branch(world):
    branch_commit(world)
    world.git("mine", "checkout", "-q", "--detach", "HEAD~1")


def untracked_in_the_way(world):
    write(world, "new.txt", "mine\n")


def ignored_in_the_way(world):
    (world.path("mine") / ".git" / "info").mkdir(exist_ok=True)
    (world.path("mine") / ".git" / "info" / "exclude").write_text("new.txt\n")
    write(world, "new.txt", "mine\n")


def untracked_folder_in_the_way(world):
    (world.path("mine") / "new.txt").mkdir()
    write(world, "new.txt/inside", "mine\n")


def file_where_a_folder_comes(world):
    write(world, "folder", "mine\n")


def hidden_by_assume_unchanged(world):
    world.git("mine", "update-index", "--assume-unchanged", "a.txt")
    dirty(world)


def hidden_by_skip_worktree(world):
    world.git("mine", "update-index", "--skip-worktree", "a.txt")
    dirty(world)


def merging(world):
    world.git("mine", "checkout", "-qb", "one")
    dirty(world)
    world.git("mine", "commit", "-qam", "one")
    world.git("mine", "checkout", "-qb", "two", "HEAD~1")
    write(world, "a.txt", "other\n")
    world.git("mine", "commit", "-qam", "two")
    with pytest.raises(AssertionError):
        world.git("mine", "merge", "one")


def rebasing(world):
    merging(world)
    world.git("mine", "merge", "--abort")
    with pytest.raises(AssertionError):
        world.git("mine", "rebase", "one")


def cherry_picking(world):
    merging(world)
    world.git("mine", "merge", "--abort")
    with pytest.raises(AssertionError):
        world.git("mine", "cherry-pick", "one")


def bisecting(world):
    world.git("mine", "bisect", "start")


CASES = {
    dirty: "uncommitted changes in 'a.txt'",
    staged: "staged changes in 'a.txt'",
    staged_new_file: "staged changes in 'mine.txt'",
    staged_then_restored: "staged changes in 'a.txt'",
    deleted: "uncommitted changes in 'a.txt'",
    mode_changed: "uncommitted changes in 'a.txt'",
    stash: "1 stash",
    detached_commit: "1 commit of HEAD or a local branch on no remote",
    branch_commit: "1 commit of branch 'feature' on no remote",
    commit_on_another_branch: "1 commit of HEAD or a local branch on no remote",
    untracked_in_the_way: "untracked files would be overwritten: 'new.txt'",
    ignored_in_the_way: "untracked files would be overwritten: 'new.txt'",
    untracked_folder_in_the_way: "untracked files would be overwritten: 'new.txt/inside'",
    file_where_a_folder_comes: "untracked files would be overwritten: 'folder'",
    hidden_by_assume_unchanged: "untracked files would be overwritten: 'a.txt'",
    hidden_by_skip_worktree: "untracked files would be overwritten: 'a.txt'",
    merging: "a merge is going on",
    rebasing: "a rebase is going on",
    cherry_picking: "a cherry-pick is going on",
    bisecting: "a bisect is going on",
}


@pytest.mark.parametrize("make", CASES, ids=lambda case: case.__name__)
def test_entry_is_left_alone_and_the_rest_is_synced(world, make):
    mine, first = world.remote("mine")
    other, other_first = world.remote("other")
    world.repos(mine=first, other=other_first)
    assert world.sync().code == 0
    make(world)
    second = mine.commit({"a.txt": "second\n", "new.txt": "theirs\n", "folder/x.txt": "theirs\n"})
    world.repos(mine=second, other=other.commit({"a.txt": "second\n"}))
    before, head = snapshot(world.path("mine")), world.head("mine")
    answer = world.sync()
    assert answer.code == 3, answer.err
    assert f"mine: refused: {CASES[make]}" in answer.err
    after = snapshot(world.path("mine"))
    # Fetching may add what the remote has; it never changes files, the index, HEAD, branches or stashes.
    fetched = {name for name in after if name.startswith((".git/refs/remotes", ".git/FETCH_HEAD", ".git/packed-refs"))}
    assert {k: v for k, v in after.items() if k not in fetched} == {k: v for k, v in before.items() if k not in fetched}
    assert world.head("mine") == head
    assert (world.path("other") / "a.txt").read_text() == "second\n"
    status = world.run("status", "--json")
    assert status.code == 0 and len(status.json["entries"]) == 2
    advice = answer.err.split("error: mine: refused", 1)[1].splitlines()[1]
    assert "sync again" in advice


@pytest.mark.parametrize("make", [dirty, staged, stash, bisecting], ids=lambda case: case.__name__)
def test_an_entry_at_its_pin_with_local_work_is_reported(world, make):
    _, first = world.remote("mine")
    world.repos(mine=first)
    assert world.sync().code == 0
    make(world)
    answer = world.sync()
    assert answer.code == 3 and f"mine: refused: {CASES[make]}" in answer.err


def test_untracked_files_that_are_not_in_the_way_stay(world):
    mine, first = world.remote("mine")
    world.repos(mine=first)
    world.sync()
    write(world, "notes.txt", "mine\n")
    world.repos(mine=mine.commit({"a.txt": "second\n"}))
    assert world.sync().code == 0
    assert (world.path("mine") / "notes.txt").read_text() == "mine\n"
    assert (world.path("mine") / "a.txt").read_text() == "second\n"


def test_a_branch_without_own_commits_is_left_behind_safely(world):
    mine, first = world.remote("mine")
    world.repos(mine=first)
    world.sync()
    world.git("mine", "checkout", "-qb", "feature")
    second = mine.commit({"a.txt": "second\n"})
    world.repos(mine=second)
    assert world.sync().code == 0
    assert world.head("mine") == second and world.git("mine", "rev-parse", "feature") == first


def test_a_pin_whose_branch_was_rewritten_is_not_taken_for_local_commits(world):
    mine, first = world.remote("mine")
    second = mine.commit({"a.txt": "second\n"})
    world.repos(mine=second)
    assert world.sync().code == 0
    mine.reset(first)
    third = mine.commit({"a.txt": "third\n"})
    world.repos(mine=third)
    assert world.sync().code == 0
    assert world.head("mine") == third


# what else may be at the path of an entry


def test_a_moved_remote_is_updated_in_the_checkout(world):
    mine, first = world.remote("mine")
    world.repos(mine=first)
    world.sync()
    moved = mine.bare.rename(mine.bare.with_name("elsewhere.git"))
    mine.bare = moved
    world.repos(mine=first)
    answer = world.sync()
    assert answer.code == 0 and "url updated" in answer.out
    assert world.git("mine", "config", "remote.origin.url") == f"file://{moved}"
    assert "nothing to do" in world.sync().out


def test_a_moved_remote_is_fetched_from(world):
    mine, first = world.remote("mine")
    world.repos(mine=first)
    world.sync()
    second = mine.commit({"a.txt": "second\n"})
    mine.bare = mine.bare.rename(mine.bare.with_name("elsewhere.git"))
    world.repos(mine=second)
    assert world.sync().code == 0
    assert world.head("mine") == second


def foreign_file(path: Path) -> None:
    path.write_text("keep me\n")


def foreign_folder(path: Path) -> None:
    path.mkdir()
    (path / "keep.txt").write_text("keep me\n")


def foreign_repository(path: Path) -> None:
    path.mkdir()
    run = {"cwd": path, "check": True}
    subprocess.run(["git", "init", "-q"], **run)
    subprocess.run(["git", "remote", "add", "origin", "file:///somewhere/else.git"], **run)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], **run)


def empty_repository(path: Path) -> None:
    path.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=path, check=True)
    (path / "keep.txt").write_text("keep me\n")


def dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (foreign_file, "'mine' holds a file"),
        (foreign_folder, "'mine' holds files such as 'keep.txt'"),
        (foreign_repository, "'mine' is a checkout of file:///somewhere/else.git, not of"),
        (empty_repository, "'mine' is a git repository without commits"),
        (dangling_link, "'mine' holds a symbolic link"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_a_path_that_holds_something_else_is_refused(world, make, words):
    _, first = world.remote("mine")
    _, other = world.remote("other")
    make(world.path("mine"))
    world.repos(mine=first, other=other)
    before = snapshot(world.root)
    answer = world.sync()
    assert answer.code == 3 and f"mine: refused: {words}" in answer.err
    assert {k: v for k, v in snapshot(world.root).items() if k in before} == before
    assert world.head("other") == other
    assert world.run("status", "--json").code == 0


def test_a_checkout_made_by_hand_is_adopted_when_it_has_the_pin(world):
    mine, first = world.remote("mine")
    subprocess.run(["git", "clone", "-q", str(mine.bare), str(world.path("mine"))], check=True)
    world.repos(mine=first)
    assert world.sync().code == 0
    assert world.git("mine", "config", "remote.origin.url") == mine.url


def test_an_empty_folder_is_filled(world):
    _, first = world.remote("mine")
    world.path("mine").mkdir()
    world.repos(mine=first)
    assert world.sync().code == 0 and world.head("mine") == first


# nothing in a checkout may run code


@pytest.fixture
def trap(tmp_path):
    """A program that leaves a mark when it runs."""
    mark, program = tmp_path / "it-ran", tmp_path / "trap.sh"
    program.write_text(f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    program.chmod(0o755)
    return program, mark


def test_hook_templates_of_the_user_do_not_run(world, trap, tmp_path, monkeypatch):
    program, mark = trap
    hooks = tmp_path / "template" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"):
        shutil.copy(program, hooks / name)
    config = tmp_path / "gitconfig"
    config.write_text(f"[init]\n\ttemplateDir = {hooks.parent}\n[core]\n\thooksPath = {hooks}\n")
    mine, first = world.remote("mine")
    second = mine.commit({"a.txt": "second\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    world.repos(mine=first)
    assert world.sync().code == 0
    world.repos(mine=second)
    assert world.sync().code == 0
    assert world.head("mine") == second and not mark.exists()


def test_hooks_and_monitors_put_into_a_checkout_do_not_run(world, trap):
    program, mark = trap
    mine, first = world.remote("mine")
    world.repos(mine=first)
    world.sync()
    hooks = world.path("mine") / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        shutil.copy(program, hooks / name)
    (world.path("mine") / ".husky").mkdir()
    shutil.copy(program, world.path("mine") / ".husky" / "post-checkout")
    config = world.path("mine") / ".git" / "config"
    with config.open("a") as stream:
        stream.write(f"[core]\n\tfsmonitor = {program}\n\thooksPath = .husky\n")
    world.repos(mine=mine.commit({"a.txt": "second\n"}))
    answer = world.sync()
    assert answer.code == 0, answer.err
    assert world.run("status").code == 0 and world.run("diff").code == 0
    assert not mark.exists()


@pytest.mark.parametrize(
    "lines",
    [
        '[filter "x"]\n\tsmudge = {0}\n\tclean = {0}\n',
        "[core]\n\tsshCommand = {0}\n",
        "[credential]\n\thelper = {0}\n",
        '[credential "https://example.org"]\n\thelper = {0}\n',
        '[remote "origin"]\n\tuploadpack = {0}\n',
        "[include]\n\tpath = /tmp/other\n",
        '[includeIf "gitdir:/"]\n\tpath = /tmp/other\n',
        '[diff "x"]\n\ttextconv = {0}\n',
        '[url "ext::sh -c {0}"]\n\tinsteadOf = file:\n',
        '[filter "x"] smudge = {0}\n',
    ],
)
def test_a_checkout_whose_configuration_could_run_code_is_refused(world, trap, lines):
    program, mark = trap
    mine, first = world.remote("mine", {"a.txt": "x\n", ".gitattributes": "* filter=x diff=x\n"})
    world.repos(mine=first)
    world.sync()
    with (world.path("mine") / ".git" / "config").open("a") as stream:
        stream.write(lines.format(program))
    world.repos(mine=mine.commit({"a.txt": "second\n"}))
    answer = world.sync()
    assert answer.code == 3 and "its .git/config could run code" in answer.err
    assert world.run("status", "--json").code == 0 and world.run("diff", "--json").code == 0
    assert world.head("mine") == first and not mark.exists()


def test_large_file_support_set_up_in_a_checkout_is_fine(world):
    _, first = world.remote("mine")
    world.repos(mine=first)
    world.sync()
    with (world.path("mine") / ".git" / "config").open("a") as stream:
        stream.write('[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n')
    assert world.sync().code == 0


def test_a_transport_helper_as_url_is_a_manifest_error(world, trap):
    program, mark = trap
    world.manifest(f'workspace: 1\nname: t\nrepos:\n  x: {{url: "ext::{program}", rev: main, path: x}}\n')
    answer = world.sync()
    assert answer.code == 2 and "names the transport helper 'ext'" in answer.err
    assert not mark.exists()


# submodules


def submodule_world(world):
    inner, inner_first = world.remote("inner")
    outer, _ = world.remote("outer")
    command = ["git", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.url, "sub"]
    subprocess.run(command, cwd=outer.work, check=True)
    first = outer.commit({"b.txt": "b\n"})
    inner_second = inner.commit({"a.txt": "second\n"})
    subprocess.run(["git", "-C", str(outer.work / "sub"), "-c", "protocol.file.allow=always", "pull", "-q"], check=True)
    second = outer.commit({"b.txt": "bb\n"})
    return first, second, inner_first, inner_second


def test_submodules_follow_the_pin(world):
    first, second, inner_first, inner_second = submodule_world(world)
    world.repos(outer=first)
    answer = world.sync()
    assert answer.code == 0, answer.err
    assert world.head("outer/sub") == inner_first
    world.repos(outer=second)
    answer = world.sync()
    assert answer.code == 0, answer.err
    assert world.head("outer/sub") == inner_second
    assert "nothing to do" in world.sync().out


def test_work_in_a_submodule_is_protected(world):
    first, second, _, _ = submodule_world(world)
    world.repos(outer=first)
    world.sync()
    (world.path("outer") / "sub" / "a.txt").write_text("mine\n")
    world.repos(outer=second)
    answer = world.sync()
    assert answer.code == 3 and "uncommitted changes in 'sub'" in answer.err
    assert (world.path("outer") / "sub" / "a.txt").read_text() == "mine\n"


def test_commits_in_a_submodule_are_protected(world):
    first, second, _, _ = submodule_world(world)
    world.repos(outer=first)
    world.sync()
    world.git("outer/sub", "commit", "-q", "--allow-empty", "-m", "mine")
    mine = world.head("outer/sub")
    world.repos(outer=second)
    assert world.sync().code == 3
    assert world.head("outer/sub") == mine


def test_submodules_can_be_switched_off(world):
    first, *_ = submodule_world(world)
    url = world.remotes["outer"].url
    world.manifest(
        f'workspace: 1\nname: t\nrepos:\n  outer: {{url: "{url}", rev: "{first}", path: outer, submodules: off}}\n'
    )
    assert world.sync().code == 0
    assert not list((world.path("outer") / "sub").iterdir())
