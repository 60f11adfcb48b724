"""What changed since a revision, through GitPython's model of the repository."""

from __future__ import annotations

from pathlib import Path

from ptows.errors import PtowsError, UsageError
from ptows.git.command import environment


def changed_files(root: Path, rev: str) -> set[str]:
    """Files that differ between commit ``rev`` and the files as they are, untracked ones included.

    Names are relative to ``root``; files of the repository outside ``root`` are left out.

    Raises:
        UsageError: ``rev`` names no commit.
        PtowsError: ``root`` is in no git repository.
    """
    import git

    try:
        repository = git.Repo(root, search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError):
        raise PtowsError(f"{root} is in no git repository", "--affected-since needs one") from None
    with repository:
        repository.git.update_environment(**environment(root))
        try:
            commit = repository.commit(rev)
        except (git.BadName, git.GitCommandError, ValueError, IndexError):
            raise UsageError(f"'{rev}' names no commit in {root}", "give a branch, a tag or a hash") from None
        names = set(repository.untracked_files)
        for difference in commit.diff(None):
            names |= {name for name in (difference.a_path, difference.b_path) if name}
        top = Path(repository.working_tree_dir or root).resolve()
    prefix = "" if top == root.resolve() else root.resolve().relative_to(top).as_posix() + "/"
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
