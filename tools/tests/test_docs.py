"""The pages say what the program does: command reference, manifest example, states, keys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ptows.bump import version_modules
from ptows.commands.reference import insert, render
from ptows.manifest import load
from ptows.manifest.schema import PACKAGE_KEYS, TOP_KEYS

ROOT = Path(__file__).parents[2]
PAGES = {language: ROOT / "docs" / language / "workspace.md" for language in ("en", "zh")}


@pytest.fixture(params=PAGES)
def page(request) -> str:
    return PAGES[request.param].read_text(encoding="utf-8")


def test_the_command_reference_is_current(page):
    """After changing a command: python -m ptows.commands.reference docs/en/workspace.md docs/zh/workspace.md."""
    assert insert(page, render()) == page


def test_every_manifest_key_is_explained(page):
    for key in (*TOP_KEYS, *PACKAGE_KEYS):
        assert f"`{key}`" in page, key


def test_the_example_manifest_is_valid(page, tmp_path):
    example = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    manifest = re.sub(r"<40[^>]*>", "0" * 39 + "a", example[0])
    (tmp_path / "workspace.yaml").write_text(manifest, encoding="utf-8")
    (tmp_path / "workspace.local.yaml").write_text(example[1], encoding="utf-8")
    found = load(tmp_path)
    assert found.entries["pto-isa"].url == "file:///mirror/pto-isa"
    assert found.entries["pto-isa"].path == "external/isa" and found.groups == {"reference": True}


def test_both_pages_have_the_same_shape():
    pages = [path.read_text(encoding="utf-8") for path in PAGES.values()]
    for pattern in (r"^#+ ", r"^\|", r"^```", r"^- "):
        counts = {len(re.findall(pattern, page, re.MULTILINE)) for page in pages}
        assert len(counts) == 1, pattern


REFUSALS = {
    "sync/plan.py": ["on no remote", "would be overwritten", "could run code", "is going on", "without commits"],
    "sync/entry.py": ["is not present and --offline is set", "not present and --offline is set"],
    "sync/journal.py": ["files changed after an interrupted sync", "another git is working in", "still works in"],
    "sync/holding.py": ["the workspace is being synchronised by"],
    "sync/run.py": ["--locked needs full commit hashes", "this is Python", "does not exist", "does not match"],
    "sync/install.py": ["installing the packages failed", "belongs to the system"],
    "git/command.py": ["no space left", "the remote said nothing for"],
    "git/transfer.py": ["does not exist at"],
    "lock.py": ["is damaged", "has schema"],
    "manifest/schema.py": ["schema version"],
    "vendor.py": ["files in the way of the new content"],
}


@pytest.mark.parametrize("file", REFUSALS)
def test_every_refusal_of_the_program_is_in_the_table(page, file):
    source = (ROOT / "tools/src/ptows" / file).read_text(encoding="utf-8")
    for words in REFUSALS[file]:
        assert words in source and words in page, words


def test_versions_in_the_code_are_those_of_the_packages():
    """ptows bump keeps them in step; an edit by hand has to as well."""
    found = {}
    for entry in load(ROOT).packages:
        for module in version_modules(ROOT / entry.path):
            for version in re.findall(r"^__version__ = \"(.*)\"$", module.read_text(encoding="utf-8"), re.MULTILINE):
                found[module.parent.name] = version
                assert version == entry.version, module
    assert {"pypto", "ptows"} <= set(found)


def test_the_workspace_s_own_manifest_loads():
    found = load(ROOT)
    assert {"ptoas_bridge", "simpler_runtime", "pypto", "pypto_lib", "ptows"} <= set(found.entries)
    assert all(entry.is_pinned for entry in found.entries.values())
