"""Finding a compiler, and a cache that is right, shared and hard to break."""

from __future__ import annotations

import errno
import os
import shutil
import stat

import pytest
from simpler_runtime.toolchain import CompileUnit, compile_libraries, find_compiler

from simpler_runtime import ToolchainError, toolchain


@pytest.fixture
def compiles(monkeypatch):
    """Counts compiler runs that make a library."""
    made = []
    original = toolchain._run

    def counting(command, what):
        made.append(what)
        original(command, what)

    monkeypatch.setattr(toolchain, "_run", counting)
    return made


def write(path, text):
    path.write_text(text)
    return path


def test_unchanged_sources_are_not_compiled_again(fresh_cache, tmp_path, compiles):
    header = write(tmp_path / "value.h", "#define VALUE 1\n")
    unit = CompileUnit(write(tmp_path / "a.cpp", '#include "value.h"\nextern "C" int f() { return VALUE; }\n'))
    first = compile_libraries([unit])[0]
    assert compile_libraries([unit]) == [first] and len(compiles) == 1
    write(header, "#define VALUE 22\n")
    second = compile_libraries([unit])[0]
    assert second != first and len(compiles) == 2
    write(header, "#define VALUE 1\n")
    assert compile_libraries([unit]) == [first] and len(compiles) == 2


def test_sources_with_equal_canonical_text_share_a_library(fresh_cache, tmp_path, compiles):
    def unit(name: str, value: int = 1) -> CompileUnit:
        text = f'static int {name}() {{ return {value}; }}\nextern "C" int f() {{ return {name}(); }}\n'
        return CompileUnit(write(tmp_path / f"{name}.cpp", text), canonical=lambda text: text.replace(name, "own"))

    first, second, other = compile_libraries([unit("left"), unit("right"), unit("wrong", value=2)])
    assert first == second != other and len(compiles) == 2
    assert compile_libraries([unit("later")]) == [first] and len(compiles) == 2
    assert compile_libraries([CompileUnit(tmp_path / "right.cpp")]) != [] and len(compiles) == 2, "by its own text"


def test_result_does_not_depend_on_the_folder(fresh_cache, tmp_path, compiles):
    units = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        write(folder / "value.h", "#define VALUE __FILE__\n")
        source = (
            '#include "value.h"\nextern "C" __attribute__((visibility("default"))) const char *f() { return VALUE; }\n'
        )
        units.append(CompileUnit(write(folder / "a.cpp", source)))
    assert compile_libraries(units[:1]) == compile_libraries(units[1:])
    assert len(compiles) == 1
    assert str(tmp_path).encode() not in compile_libraries(units[:1])[0].read_bytes()


def test_flags_and_defines_are_part_of_the_identity(fresh_cache, tmp_path):
    source = write(tmp_path / "a.cpp", 'extern "C" int f() { return V; }\n')
    one, two = compile_libraries([CompileUnit(source, defines=("V=1",)), CompileUnit(source, defines=("V=2",))])
    assert one != two


def test_compile_errors_carry_the_compilers_text(fresh_cache, tmp_path):
    unit = CompileUnit(write(tmp_path / "bad.cpp", "int f() { return missing_name; }\n"), name="my kernel")
    with pytest.raises(ToolchainError, match=r"(?s)compiling my kernel failed.*missing_name.*command: "):
        compile_libraries([unit])
    with pytest.raises(ToolchainError, match=r"not found: .*absent\.cpp"):
        compile_libraries([CompileUnit(tmp_path / "absent.cpp")])
    assert not list((fresh_cache / "work").iterdir())


def test_damaged_cache_entries_are_replaced(fresh_cache, tmp_path, compiles):
    unit = CompileUnit(write(tmp_path / "a.cpp", 'extern "C" int f() { return 3; }\n'))
    library = compile_libraries([unit])[0]
    for manifest in (fresh_cache / "manifests").rglob("*.json"):
        manifest.write_text("{not json")
    assert compile_libraries([unit]) == [library]
    library.unlink()
    assert compile_libraries([unit]) == [library]
    assert len(compiles) == 3


@pytest.mark.parametrize("keep", [0, 100, 8000])
def test_a_library_that_was_cut_short_is_compiled_again(fresh_cache, tmp_path, compiles, keep):
    unit = CompileUnit(write(tmp_path / "a.cpp", 'extern "C" int f() { return 3; }\n'))
    library = compile_libraries([unit])[0]
    whole = library.read_bytes()
    library.write_bytes(whole[:keep])
    assert compile_libraries([unit])[0].stat().st_size == len(whole)
    library.with_suffix(".sha256").unlink()
    compile_libraries([unit])
    assert len(compiles) == 3


def test_a_stored_binary_that_was_cut_short_is_written_again(fresh_cache):
    stored = toolchain.store_binary(b"some code")
    stored.write_bytes(b"some")
    assert toolchain.store_binary(b"some code").read_bytes() == b"some code"


def test_a_cache_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PTO_CACHE_DIR", str(write(tmp_path / "file", "") / "cache"))
    unit = CompileUnit(write(tmp_path / "a.cpp", 'extern "C" int f() { return 3; }\n'))
    for store in (lambda: compile_libraries([unit]), lambda: toolchain.store_binary(b"some code")):
        with pytest.raises(ToolchainError, match=r"cannot be written \(Not a directory\); set PTO_CACHE_DIR"):
            store()


def test_a_cache_that_is_full_is_named(fresh_cache, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ToolchainError, match=r"cannot be written \(No space left on device\)"):
        toolchain.store_binary(b"some code")
    assert [path for path in fresh_cache.rglob("*") if path.is_file()] == []


def test_a_cache_that_is_removed_meanwhile_is_made_again(fresh_cache, tmp_path, monkeypatch):
    unit = CompileUnit(write(tmp_path / "a.cpp", 'extern "C" int f() { return 3; }\n'))
    run, calls = toolchain._run, []

    def remove_before(command, what):
        calls.append(what)
        if len(calls) == 1:
            shutil.rmtree(fresh_cache)
        run(command, what)

    monkeypatch.setattr(toolchain, "_run", remove_before)
    (library,) = compile_libraries([unit])
    assert len(calls) == 2 and library.is_file()


@pytest.mark.parametrize("content", [b"\xff\xfe int f(;", bytes(range(256)) * 9])
def test_the_complaint_about_a_source_that_is_no_text_is_shown(fresh_cache, tmp_path, content):
    source = tmp_path / "a.cpp"
    source.write_bytes(content)
    with pytest.raises(ToolchainError, match=r"compiling a\.cpp failed"):
        compile_libraries([CompileUnit(source)])


def test_what_is_no_file_is_not_read(fresh_cache, tmp_path):
    os.mkfifo(tmp_path / "a.cpp")
    with pytest.raises(ToolchainError, match="source file not found"):
        compile_libraries([CompileUnit(tmp_path / "a.cpp")])


def test_leftovers_of_killed_processes_are_removed(fresh_cache, tmp_path):
    old, young = fresh_cache / "work" / "old", fresh_cache / "work" / "young"
    for folder in (old, young):
        folder.mkdir(parents=True)
        (folder / "unit.so").write_text("half a library")
    os.utime(old, (0, 0))
    compile_libraries([CompileUnit(write(tmp_path / "a.cpp", 'extern "C" int f() { return 3; }\n'))])
    assert not old.exists() and young.exists()


def test_identical_units_of_one_build_are_compiled_once(fresh_cache, tmp_path, compiles):
    unit = CompileUnit(write(tmp_path / "a.cpp", 'extern "C" int f() { return 3; }\n'))
    assert len(set(compile_libraries([unit, unit, unit]))) == 1
    assert len(compiles) == 1


def test_compiler_search(tmp_path, monkeypatch):
    fake = write(tmp_path / "clang++", "#!/bin/sh\necho clang version 99\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PTO_CACHE_DIR", str(tmp_path / "cache"))
    compiler = find_compiler()
    assert compiler.command == (str(fake),)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("CXX", "clang++ -stdlib=libc++")
    compiler = find_compiler()
    assert compiler.command == (str(fake), "-stdlib=libc++") and compiler.is_clang
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(ToolchainError, match=r"\$CXX.*no-such-compiler"):
        find_compiler()


def test_advice_when_there_is_no_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setitem(__import__("sys").modules, "ziglang", None)
    toolchain._find_compiler.cache_clear()
    with pytest.raises(ToolchainError, match=r"(?s)apt install g\+\+.*pip install ziglang"):
        find_compiler()


def test_scene_tests_run_end_to_end(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    from simpler_setup import Scalar, SceneTestCase, TaskArgsBuilder, TensorArg, scene_test

    from simpler_runtime import ArgDirection as D
    from simpler_runtime import Worker

    isa = tmp_path / "include" / "pto"
    isa.mkdir(parents=True)
    write(isa / "pto-inst.hpp", "#pragma once\n")
    monkeypatch.setenv("PTO_ISA_ROOT", str(tmp_path))
    orchestration = write(
        tmp_path / "orch.cpp",
        """
        #include "pto_orchestration_api.h"
        extern "C" __attribute__((visibility("default")))
        PTO2OrchestrationConfig aicpu_orchestration_config(const ChipTaskArgs &) { return {.expected_arg_count = 3}; }
        extern "C" __attribute__((visibility("default"))) void aicpu_orchestration_entry(const ChipTaskArgs &args) {
            const ChipTensor &x = args.tensor(0).ref(), &y = args.tensor(1).ref();
            CoreTaskArgs a; a.add_input(x); a.add_output(y); a.add_scalar(args.scalar(0)); rt_submit_aiv_task(0, a);
        }
        """,
    )
    kernel = write(
        tmp_path / "k.cpp",
        """
        #include <pto/pto-inst.hpp>
        #include "tensor.h"
        extern "C" void kernel_entry(int64_t *args) {
            auto *x = reinterpret_cast<ChipTensor *>(args[0])->data_as<float>();
            auto *y = reinterpret_cast<ChipTensor *>(args[1])->data_as<float>();
            for (int i = 0; i < 8; ++i) y[i] = x[i] * from_u64<float>(args[2]);
        }
        """,
    )

    @scene_test(level=2)
    class Scale(SceneTestCase):
        CALLABLE = {
            "orchestration": {"source": str(orchestration), "signature": [D.IN, D.OUT]},
            "incores": [{"func_id": 0, "source": str(kernel), "core_type": "aiv", "signature": [D.IN, D.OUT]}],
        }
        CASES = [{"name": "twice", "platforms": ["a2a3sim"], "params": {"by": 2.0}}]
        wrong = 0.0

        def generate_args(self, params):
            return TaskArgsBuilder(
                TensorArg("x", torch.ones(8)), TensorArg("y", torch.zeros(8)), Scalar("by", params["by"])
            )

        def compute_golden(self, args, params):
            args.y[:] = args.x * params["by"] + self.wrong

    target = Scale.build("a2a3sim")
    with Worker(level=2, platform="a2a3sim") as worker:
        case = next(Scale.cases("a2a3sim"))
        Scale().run_case(worker, target, case, rounds=2)
        Scale().test_run()
        broken = Scale()
        broken.wrong = 1.0
        with pytest.raises(AssertionError, match=r"output 'y': 8 of 8 elements differ"):
            broken.run_case(worker, target, case)
        with pytest.raises(ValueError, match="unknown config keys"):
            Scale().run_case(worker, target, {"name": "bad", "config": {"block_dim": 1}})
    assert list(Scale.cases("a5sim")) == []
