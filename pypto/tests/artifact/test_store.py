"""The store of compiled programs: what is found, what is refused, what a killed or crowded disk does."""

from __future__ import annotations

import json
import os

import pytest
from pypto.artifact import store


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "programs"


@pytest.fixture
def artifact(tmp_path):
    files = {
        "kernel_config.py": "KERNELS = []\n",
        "compiled_meta.json": "{}",
        "kernels/aiv/add.cpp": "// kernel\n",
        "orchestration/main.cpp": "// entry\n",
        "ptoas/add.pto": "// not needed to run\n",
    }
    for name, text in files.items():
        (tmp_path / "build" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "build" / name).write_text(text)
    return tmp_path / "build"


def test_what_was_published_is_found_with_the_files_a_run_needs(artifact):
    assert store.lookup("key") is None
    store.publish("key", artifact)
    folder = store.lookup("key")
    assert folder is not None
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    assert names == [
        "compiled_meta.json", "contents.json", "kernel_config.py", "kernels/aiv/add.cpp", "orchestration/main.cpp",
    ]  # fmt: skip
    assert (folder / "kernels/aiv/add.cpp").read_text() == "// kernel\n"


def test_publishing_twice_keeps_the_first_entry(artifact):
    store.publish("key", artifact)
    first = os.stat(store.lookup("key")).st_ino
    store.publish("key", artifact)
    assert os.stat(store.lookup("key")).st_ino == first


@pytest.mark.parametrize("damage", ["shorten", "remove", "no list", "not a list"])
def test_a_damaged_entry_is_a_miss_and_is_replaced(artifact, damage):
    store.publish("key", artifact)
    folder = store.lookup("key")
    if damage == "shorten":
        (folder / "orchestration/main.cpp").write_text("")
    elif damage == "remove":
        (folder / "kernels/aiv/add.cpp").unlink()
    else:
        (folder / "contents.json").write_text("{" if damage == "no list" else json.dumps([1]))
    assert store.lookup("key") is None
    store.publish("key", artifact)
    assert store.lookup("key") is not None


def test_an_unfinished_publication_leaves_nothing(artifact, monkeypatch, root):
    def fail(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.shutil, "copyfile", fail)
    store.publish("key", artifact)
    assert store.lookup("key") is None
    assert list((root / store.compiler_fingerprint()).iterdir()) == []


def test_a_place_that_cannot_be_written_is_no_error(artifact, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "file" / "below"))
    store.publish("key", artifact)
    assert store.lookup("key") is None


def test_another_compiler_does_not_see_the_entry(artifact, monkeypatch):
    store.publish("key", artifact)
    monkeypatch.setattr(store, "compiler_fingerprint", lambda: "other")
    assert store.lookup("key") is None


def test_entries_of_compilers_not_used_lately_are_dropped(artifact, monkeypatch, root):
    for number in range(6):
        monkeypatch.setattr(store, "compiler_fingerprint", lambda number=number: f"version{number}")
        store.publish("key", artifact)
        os.utime(root / f"version{number}", (1000 + number, 1000 + number))
    assert sorted(p.name for p in root.iterdir()) == ["version2", "version3", "version4", "version5"]


def test_the_fingerprint_follows_the_files_of_the_compiler(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.py").write_text("x")
    (tmp_path / "note.txt").write_text("x")
    before = sorted(store._source_files(str(tmp_path)))
    assert [name for name, _, _ in before] == [str(tmp_path / "sub" / "a.py")]
    (tmp_path / "sub" / "a.py").write_text("xy")
    assert sorted(store._source_files(str(tmp_path))) != before
