"""Logging, compile profiling, errors, and what ``import pypto`` loads."""

import json
import subprocess
import sys
import threading

import pytest
from pypto.compile_profiling import CompileProfiler, StageRecord, format_duration, get_active_profiler
from pypto.logging import LogLevel
from pypto.pypto_core import _clear_thread_log_level, _set_thread_log_level

import pypto
from pypto import ir, testing


@pytest.fixture(autouse=True)
def keep_level():
    saved = pypto.get_log_level()
    yield
    _clear_thread_log_level()
    pypto.set_log_level(saved)


def run(code, **env):
    import os

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env}, check=True
    )
    return done.stdout.strip(), done.stderr


def test_import_is_light():
    code = "import sys, pypto; print(sorted({'torch', 'numpy', 'xdsl'} & set(sys.modules)))"
    assert run(code)[0] == "[]"


def test_submodules_and_constants():
    assert pypto.arith.Analyzer and pypto.ir is ir
    assert pypto.__version__.count(".") == 2
    assert pypto.DT_FP32 == ir.DataType.FP32 == ir.FP32 and not hasattr(pypto, "DT_TASK_ID")
    assert pypto.pypto_core.ir.Var is ir.Var and pypto.pypto_core.arith.Analyzer is pypto.arith.Analyzer
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pypto.nothing  # noqa: B018


@pytest.mark.parametrize("level", list(LogLevel))
def test_threshold(level, capfd):
    pypto.set_log_level(level)
    for name in ("debug", "info", "warn", "error", "fatal", "event"):
        getattr(pypto, f"log_{name}")(f"at {name}")
    shown = [line.split(" | ")[1] for line in capfd.readouterr().err.splitlines()]
    assert shown == [f"at {n}" for n in ("debug", "info", "warn", "error", "fatal", "event")[int(level) :]]


def test_markers(capfd):
    pypto.set_log_level(LogLevel.DEBUG)
    for name, marker in zip(("debug", "info", "warn", "error", "fatal", "event"), "DIWEFV"):
        getattr(pypto, f"log_{name}")("text")
        assert f"{marker} | text" in capfd.readouterr().err


def test_thread_override_is_for_its_thread(capfd):
    pypto.set_log_level(LogLevel.INFO)

    def work():
        _set_thread_log_level(LogLevel.ERROR)
        pypto.log_info("hidden")
        assert pypto.get_log_level() == LogLevel.INFO

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    pypto.log_info("shown")
    assert "hidden" not in (err := capfd.readouterr().err) and "shown" in err


@pytest.mark.parametrize(("value", "level"), [("error", "ERROR"), ("Debug", "DEBUG"), ("3", "INFO"), ("", "INFO")])
def test_level_from_the_environment(value, level):
    assert run("import pypto; print(pypto.get_log_level().name)", PYPTO_LOG_LEVEL=value)[0] == level


def test_profiler_nests_stages():
    with CompileProfiler() as profiler:
        assert CompileProfiler.current() is profiler is get_active_profiler()
        with profiler.stage("a"), profiler.stage("b"):
            pass
        profiler.add_stage_record(StageRecord("late", 1.0, 1.5))
    stages = profiler.to_dict()["stages"]
    assert [s["name"] for s in stages] == ["a", "late"] and stages[0]["children"][0]["name"] == "b"
    assert stages[1]["seconds"] == 0.5
    assert CompileProfiler.current() is None


def test_profiler_closes_stages_when_an_error_passes():
    with CompileProfiler() as profiler:
        with pytest.raises(KeyError), profiler.stage("a"):
            raise KeyError
        with profiler.stage("b"):
            pass
    assert [s.name for s in profiler.stages] == ["a", "b"]


def test_profile_report(tmp_path):
    profiler = CompileProfiler()
    profiler.stages = [StageRecord("passes", 0.5, 2.5, [StageRecord("Simplify", 0.5, 0.75)])]
    profiler.write_report(tmp_path / "report")
    lines = (tmp_path / "report" / "pipeline_profile.txt").read_text().splitlines()
    assert lines == [
        "PyPTO Compile Profile",
        "=" * 22,
        "Total: 2.000s",
        "",
        "passes                          2.000s  (100.0%)",
        "  Simplify                     250.0ms  ( 12.5%)",
    ]
    assert json.loads((tmp_path / "report" / "pipeline_profile.json").read_text())["total_seconds"] == 2.0


@pytest.mark.parametrize(("seconds", "text"), [(0.000123, "123us"), (0.0123, "12.3ms"), (2.847, "2.847s")])
def test_durations(seconds, text):
    assert format_duration(seconds) == text


def test_profiler_from_the_environment(monkeypatch):
    monkeypatch.setenv("PYPTO_COMPILE_PROFILING", "1")
    assert get_active_profiler() is get_active_profiler() is not None
    monkeypatch.setenv("PYPTO_COMPILE_PROFILING", "0")
    assert get_active_profiler() is None


def test_checks():
    pypto.check(True, "fine")
    with pytest.raises(ValueError) as caught:
        pypto.check(False, "no")
    assert str(caught.value).splitlines()[0] == "no"
    with pytest.raises(pypto.InternalError, match=r"bad \[m.py:4:2\]") as caught:
        pypto.internal_check_span(False, "bad", ir.Span("m.py", 4, 2))
    assert "Check failed:" in str(caught.value) and "Traceback" in str(caught.value)
    assert not issubclass(pypto.InternalError, (pypto.Error, ValueError))


@pytest.mark.parametrize(
    "kind",
    ["ValueError", "TypeError", "RuntimeError", "NotImplementedError", "IndexError", "AssertionError", "InternalError"],
)
def test_a_new_message_keeps_the_class(kind):
    expected = pypto.InternalError if kind == "InternalError" else getattr(__builtins__, kind, None) or eval(kind)
    with pytest.raises(expected) as caught:
        testing.rethrow_with_message(kind, "before", "after")
    assert str(caught.value).startswith("after")


def test_traces_of_user_errors_are_opt_in(monkeypatch):
    monkeypatch.delenv("PTO_BACKTRACE", raising=False)
    with pytest.raises(ValueError, match=r"^plain$"):
        testing.raise_value_error("plain")
    monkeypatch.setenv("PTO_BACKTRACE", "1")
    with pytest.raises(ValueError, match="Traceback"):
        testing.raise_value_error("plain")


def test_declarations_of_operators():
    assert testing.get_declared_core_affinity("pld.tile.put") == "vector"
    assert testing.get_declared_core_affinity("pld.system.wait") is None
    assert testing.is_no_duplicate_op("pld.system.notify") and not testing.is_no_duplicate_op("tile.add")
    with pytest.raises(ValueError, match="nothing"):
        testing.is_no_duplicate_op("nothing")


def test_compile_is_a_function_and_a_module():
    import pypto.ir.compile as module
    from pypto.ir.compile import compile

    assert module is ir.compile and module.compile is compile
    for function in (compile, ir.compile):
        with pytest.raises(TypeError, match=r"ir\.compile needs an ir\.Program, got int"):
            function(3)
