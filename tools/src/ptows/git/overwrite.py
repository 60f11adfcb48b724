"""Which files of nobody but the user a checkout would overwrite: untracked, ignored, or hidden from git's eye."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from ptows.git.command import git


def in_the_way(path: Path, before: str, after: str) -> list[str]:
    """Files that moving ``path`` from ``before`` to ``after`` would replace although git does not track them.

    ``path`` is the top of a checkout; ``before`` and ``after`` are commits or trees.

    git itself overwrites ignored files without a word, and files marked assume-unchanged or skip-worktree, so both
    are looked for here.
    """
    arguments = ("diff-tree", "-r", "-z", "--no-renames", "--name-status", "--no-commit-id")
    fields = git(*arguments, before, after, cwd=path).out.split("\0")[:-1]
    changes = dict(zip(fields[1::2], fields[0::2]))
    gone = {name for name, status in changes.items() if status == "D"}
    found = []
    for name, status in changes.items():
        if status != "A":
            continue
        full = path / name
        if full.is_dir() and not full.is_symlink():
            # A tracked folder may become a file; what it holds besides tracked files must not go.
            found += git("ls-files", "--others", "-z", "--", name, cwd=path).out.split("\0")[:-1]
        elif os.path.lexists(full):
            found.append(name)
        else:
            for parent in PurePosixPath(name).parents:
                place = path / parent
                if str(parent) != "." and os.path.lexists(place):
                    if (place.is_symlink() or not place.is_dir()) and str(parent) not in gone:
                        found.append(str(parent))
                    break
    tags = git("ls-files", "-v", "-z", cwd=path).out.split("\0")[:-1]
    for line in tags:
        tag, name = line[0], line[2:]
        # Sparse checkouts mark the files they leave out: those are not there to be lost.
        is_hidden = tag.islower() or (tag == "S" and os.path.lexists(path / name))
        if is_hidden and name in changes:
            found.append(name)
    return sorted(set(found))
