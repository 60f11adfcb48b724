"""Makes the complete, verified checkout and diff that a review reads; every object is present or nothing starts.

Trusted host code: repository contents are bytes here. Nothing from the work tree is opened, imported or executed.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import stat
import subprocess
from typing import Any, NamedTuple

from codex_review_common import commit_sha

DIFF_LIMIT = 64 * 1024 * 1024
GIT_TIMEOUT = 600
#: Overrides every attribute of the reviewed tree, so that none can hide text from the diff or pick a driver.
_ATTRIBUTES = "* !diff !filter !text !eol !ident !crlf !merge !working-tree-encoding !whitespace\n"


class Checkout(NamedTuple):
    """A verified checkout: its work tree, the merge base, and the rendered diff."""

    tree: str
    merge_base: str
    diff: str


class Git:
    """Runs git in one repository with no configuration, hook, prompt, helper or lazy fetch from anywhere else."""

    def __init__(self, tree: str, remote: str, token: str | None = None) -> None:
        scheme = remote.split("://", 1)[0]
        if scheme not in ("https", "file"):
            raise ValueError(f"unsupported remote {remote!r}; expected https")
        self.tree, self.remote = tree, remote
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        for secret in ("GH_TOKEN", "GITHUB_TOKEN"):
            self.environment.pop(secret, None)
        self.environment.update(
            {
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_ATTR_NOSYSTEM": "1",
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_LFS_SKIP_SMUDGE": "1",
                "GIT_NO_LAZY_FETCH": "1",
                "GIT_NO_REPLACE_OBJECTS": "1",
                "GIT_ALLOW_PROTOCOL": scheme,
                "LC_ALL": "C",
            }
        )
        self.header: dict = {}
        if token and scheme == "https":
            # The header lives in the environment of the fetch alone: never in a file, a URL or an argument.
            basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
            self.header = {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": f"http.{remote.split('/', 3)[0]}//{remote.split('/', 3)[2]}/.extraheader",
                "GIT_CONFIG_VALUE_0": f"Authorization: Basic {basic}",
            }

    def __call__(self, *arguments: str, stdout: Any = subprocess.PIPE, authorised: bool = False) -> str:
        """Output of a git command; ValueError with its last line when it fails."""
        done = self.run(*arguments, stdout=stdout, authorised=authorised)
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
            raise ValueError(f"git {arguments[0]} failed: {lines[-1][:300]}")
        return "" if done.stdout is None else done.stdout.decode("utf-8", "surrogateescape").strip()

    def run(self, *arguments: str, stdout: Any = subprocess.PIPE, authorised: bool = False) -> Any:
        """The finished process of a git command."""
        options = [
            "core.hooksPath=" + os.devnull,
            "core.fsmonitor=false",
            "core.attributesFile=" + os.devnull,
            "gc.auto=0",
            "maintenance.auto=false",
            "submodule.recurse=false",
            "fetch.recurseSubmodules=false",
        ]
        command = ["git", "--no-pager", *(part for option in options for part in ("-c", option)), *arguments]
        environment = {**self.environment, **(self.header if authorised else {})}
        return subprocess.run(
            command,
            cwd=self.tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=GIT_TIMEOUT,
        )


def initialise(git: Git) -> None:
    """A new repository without templates, references or shared objects."""
    git("init", "--quiet", "--template=", git.tree)
    information = os.path.join(git.tree, ".git", "info")
    os.makedirs(information, exist_ok=True)
    with open(os.path.join(information, "attributes"), "w", encoding="utf-8") as file:
        file.write(_ATTRIBUTES)


def fetch(git: Git, base: str, head: str, workflow: str, number: int) -> None:
    """Fetch the complete history of the three commits; the head also through the pull request's own ref."""
    for sha in dict.fromkeys((base, workflow)):
        git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", git.remote, sha, authorised=True)
    direct = git.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", git.remote, head, authorised=True)
    if direct.returncode:
        reference = "refs/review/head"
        source = f"+refs/pull/{number}/head:{reference}"
        git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", git.remote, source, authorised=True)
        found = git("rev-parse", "--verify", reference)
        if found != head:
            raise ValueError(f"the pull request's head is {found}, not the authorised {head}")


def verify(git: Git, commits: tuple[str, ...]) -> None:
    """ValueError unless the repository is complete: not shallow, partial or borrowing, every object reachable."""
    folder = os.path.join(git.tree, ".git")
    if git("rev-parse", "--is-shallow-repository") != "false" or os.path.lexists(os.path.join(folder, "shallow")):
        raise ValueError("the checkout is shallow")
    settings = git.run("config", "--local", "--name-only", "--list").stdout.decode("utf-8", "replace").lower()
    if re.search(r"^(extensions\.partialclone|remote\..*\.(promisor|partialclonefilter))$", settings, re.M):
        raise ValueError("the checkout is a partial clone")
    packs = os.path.join(folder, "objects", "pack")
    if os.path.isdir(packs) and any(name.endswith(".promisor") for name in os.listdir(packs)):
        raise ValueError("the checkout holds promised objects")
    borrowed = ("alternates", "http-alternates")
    if any(os.path.lexists(os.path.join(folder, "objects", "info", name)) for name in borrowed):
        raise ValueError("the checkout borrows objects from another store")
    for sha in commits:
        git("cat-file", "-e", f"{sha}^{{commit}}")
    git("rev-list", "--objects", "--quiet", *commits)
    # Listing walks commits and trees but never opens a blob: check that every reachable object is really there.
    git("fsck", "--connectivity-only", "--no-dangling", "--no-progress", *commits)


def find_merge_base(git: Git, base: str, head: str) -> str:
    """The single best merge base; ValueError for unrelated histories."""
    done = git.run("merge-base", base, head)
    lines = done.stdout.decode("ascii", "replace").split()
    if done.returncode or not lines:
        raise ValueError("base and head have no common history")
    return commit_sha(lines[0], "merge base")


def render_diff(git: Git, merge_base: str, head: str, path: str, limit: int) -> None:
    """Write the whole diff, binary contents included; fail above the limit rather than cut anything off."""
    with open(path, "wb") as file:
        git(
            "diff", "--binary", "--full-index", "--find-renames", "--no-color", "--no-ext-diff", "--no-textconv",
            "--src-prefix=a/", "--dst-prefix=b/", merge_base, head, stdout=file,
        )  # fmt: skip
    size = os.path.getsize(path)
    if size > limit:
        raise ValueError(f"the diff has {size} bytes, more than {limit}: too large to review completely")
    os.chmod(path, 0o644)


def make_checkout(
    folder: str,
    remote: str,
    *,
    base: str,
    head: str,
    workflow: str,
    number: int,
    token: str | None = None,
    limit: int = DIFF_LIMIT,
) -> Checkout:
    """A verified checkout and diff below `folder`, which must be new and private."""
    tree = os.path.join(folder, "workspace")
    os.mkdir(tree, 0o755)
    git = Git(tree, remote, token)
    initialise(git)
    fetch(git, base, head, workflow, number)
    verify(git, tuple(dict.fromkeys((base, head, workflow))))
    merge_base = find_merge_base(git, base, head)
    git("checkout", "--quiet", "--detach", "--force", head)
    if git("rev-parse", "--verify", "HEAD") != head:
        raise ValueError("the work tree is not at the authorised head")
    diff = os.path.join(folder, "review.diff")
    render_diff(git, merge_base, head, diff, limit)
    return Checkout(tree, merge_base, diff)


def trusted_file(tree: str, remote: str, workflow: str, path: str, destination: str) -> None:
    """Write a file of the workflow's own commit outside the checkout, readable by the container."""
    with open(destination, "wb") as file:
        Git(tree, remote)("show", f"{workflow}:{path}", stdout=file)
    os.chmod(destination, 0o644)


def remove_tree(path: str) -> None:
    """Remove a directory made by git, read-only entries included; links are removed, never followed."""

    def retry(function: Any, name: str, _error: Any) -> None:
        parent = os.path.dirname(name)
        for entry in (parent, name):
            if not os.path.islink(entry):
                with_write = os.lstat(entry).st_mode | stat.S_IRWXU
                os.chmod(entry, stat.S_IMODE(with_write))
        function(name)

    if os.path.islink(path):
        raise ValueError(f"refusing to remove the link {path}")
    if os.path.isdir(path):
        shutil.rmtree(path, onerror=retry)
