"""``ptows sync`` on real repositories: clones, moves, nothing to do, and the lock."""

from __future__ import annotations

import json

import pytest


def test_clones_at_the_pin_then_has_nothing_to_do(world):
    remote, first = world.remote("alpha")
    remote.commit({"a.txt": "second\n"})
    world.repos(alpha=first)
    answer = world.sync()
    assert answer.code == 0, answer.err
    assert world.head("alpha") == first
    assert (world.path("alpha") / "a.txt").read_text() == "alpha\n"
    lock = (world.root / "workspace.lock").read_bytes()
    again = world.sync()
    assert again.code == 0 and "nothing to do" in again.out
    assert (world.root / "workspace.lock").read_bytes() == lock


def test_moves_to_a_new_pin_that_has_to_be_fetched(world):
    remote, first = world.remote("alpha", {"a.txt": "one", "old.txt": "x"})
    world.repos(alpha=first)
    assert world.sync().code == 0
    second = remote.commit({"a.txt": "two", "old.txt": None, "sub/new.txt": "y"})
    world.repos(alpha=second)
    answer = world.sync("--json")
    assert answer.code == 0, answer.err
    assert answer.json["entries"][0]["state"] == "moved"
    files = sorted(p.relative_to(world.path("alpha")).as_posix() for p in world.path("alpha").rglob("*.txt"))
    assert files == ["a.txt", "sub/new.txt"]
    assert world.sync("--json").json["nothing_to_do"]


def test_a_present_pin_needs_no_remote(world):
    remote, first = world.remote("alpha")
    second = remote.commit({"a.txt": "two"})
    world.repos(alpha=second)
    assert world.sync().code == 0
    remote.bare.rename(remote.bare.with_suffix(".gone"))
    world.repos(alpha=first)
    assert world.sync().code == 0
    assert world.head("alpha") == first
    assert "nothing to do" in world.sync().out


def test_offline_uses_what_is_present_and_names_what_is_not(world):
    _, first = world.remote("alpha")
    _, other = world.remote("beta")
    world.repos(alpha=first)
    assert world.sync().code == 0
    world.repos(alpha=first, beta=other)
    answer = world.sync("--offline")
    assert answer.code == 1
    assert "beta: failed: not present and --offline is set" in answer.err


def test_a_branch_follows_its_remote_and_a_tag_stays(world):
    remote, first = world.remote("alpha")
    from_tag, _ = world.remote("beta")
    tagged = from_tag.commit({"a.txt": "tagged"})
    from_tag.tag("v1")
    from_tag.commit({"a.txt": "later"})
    world.repos(alpha="main", beta="v1")
    assert world.sync().code == 0
    assert (world.head("alpha"), world.head("beta")) == (first, tagged)
    second = remote.commit({"a.txt": "second"})
    assert world.sync().code == 0
    assert (world.head("alpha"), world.head("beta")) == (second, tagged)
    entries = json.loads((world.root / "workspace.lock").read_text())["entries"]
    assert entries["alpha"]["commit"] == second and entries["beta"]["commit"] == tagged
    refused = world.sync("--locked")
    assert refused.code == 1 and "not pinned: alpha, beta" in refused.err


def test_a_commit_on_no_branch_is_fetched_by_its_hash(world):
    remote, first = world.remote("alpha")
    lost = remote.commit({"a.txt": "lost"})
    remote.reset(first)
    world.repos(alpha=lost)
    assert world.sync().code == 0
    assert world.head("alpha") == lost
    world.repos(alpha=first)
    # The commit came from the remote although no branch has it: moving away loses nothing.
    assert world.sync().code == 0
    assert world.head("alpha") == first


@pytest.mark.parametrize("rev", ["0" * 39 + "1", "no-such-branch"])
def test_a_revision_that_does_not_exist_is_named_and_the_rest_synced(world, rev):
    world.remote("alpha")
    _, good = world.remote("beta")
    world.repos(alpha=rev, beta=good)
    answer = world.sync()
    assert answer.code == 1
    assert f"alpha: failed: revision '{rev}' does not exist at {world.remotes['alpha'].url}" in answer.err
    assert world.head("beta") == good
    assert not world.path("alpha").exists() and not world.temporary()


def test_dry_run_changes_nothing(world):
    remote, first = world.remote("alpha")
    world.repos(alpha=first)
    answer = world.sync("--dry-run")
    assert answer.code == 0 and "would clone" in answer.out
    assert sorted(p.name for p in world.root.iterdir()) == ["workspace.yaml"]
    world.sync()
    world.repos(alpha=remote.commit({"a.txt": "new"}))
    assert "would fetch and move" in world.sync("--dry-run").out
    assert world.head("alpha") == first


def test_groups_switch_entries(world):
    _, first = world.remote("alpha")
    url = world.remotes["alpha"].url
    world.manifest(
        f"workspace: 1\nname: t\ngroups: {{default: [], docs: off}}\n"
        f'repos:\n  alpha: {{url: "{url}", rev: "{first}", path: alpha, groups: [docs]}}\n'
    )
    assert world.sync().code == 0 and not world.path("alpha").exists()
    assert json.loads((world.root / "workspace.lock").read_text())["entries"]["alpha"]["commit"] == first
    assert world.sync("--groups", "+docs").code == 0 and world.head("alpha") == first
    wrong = world.sync("--groups", "+dosc")
    assert wrong.code == 2 and "did you mean 'docs'?" in wrong.err


def test_a_dirty_tree_package_is_reported_each_time_and_synchronised(five):
    assert five.sync().code == 0
    (five.root / "pypto" / "code.py").write_text("x = 2\n")
    for _ in range(2):
        answer = five.sync()
        assert answer.code == 0 and "uncommitted changes in 'pypto/code.py'" in answer.out
    assert "nothing to do: 5 entries" in answer.out
    locked = five.sync("--locked")
    assert locked.code == 1 and "commit or discard" in locked.err
