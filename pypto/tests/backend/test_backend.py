"""Hardware descriptions and the selection of the target."""

import pytest
from pypto.backend import (
    Backend910B,
    Backend950,
    BackendType,
    get_backend_instance,
    get_backend_type,
    get_handler,
    is_backend_configured,
    reset_for_testing,
    set_backend_type,
    use_backend,
)
from pypto.backend.base import Backend
from pypto.ir import CoreType, DataType, MemorySpace


@pytest.fixture(autouse=True)
def fresh_selection():
    reset_for_testing()
    yield
    reset_for_testing()


def test_memory_paths_are_shortest_and_include_both_ends():
    backend = Backend910B.instance()
    assert backend.find_mem_path(MemorySpace.DDR, MemorySpace.Bias) == [
        MemorySpace.DDR,
        MemorySpace.Mat,
        MemorySpace.Bias,
    ]
    assert backend.find_mem_path(MemorySpace.Vec, MemorySpace.Vec) == [MemorySpace.Vec]
    assert backend.find_mem_path(MemorySpace.Left, MemorySpace.Vec) == []


def test_only_950_moves_accumulators_to_vector_memory_in_one_step():
    direct = [MemorySpace.Acc, MemorySpace.Vec]
    assert Backend950.instance().find_mem_path(*direct) == direct
    assert Backend910B.instance().find_mem_path(*direct) != direct


@pytest.mark.parametrize(
    ("backend", "space", "size"),
    [
        (Backend910B, MemorySpace.Vec, 188416),
        (Backend910B, MemorySpace.Acc, 131072),
        (Backend950, MemorySpace.Vec, 245760),
        (Backend950, MemorySpace.Acc, 262144),
        (Backend910B, MemorySpace.DDR, 0),
        (Backend910B, MemorySpace.LeftScale, 0),
    ],
)
def test_memory_sizes(backend, space, size):
    assert backend.instance().get_mem_size(space) == size


def test_core_counts_multiply_through_all_levels():
    assert Backend910B.instance().get_core_count(CoreType.CUBE) == 24
    assert Backend910B.instance().get_core_count(CoreType.VECTOR) == 48
    soc = Backend950.instance().soc
    assert (soc.total_die_count(), soc.total_cluster_count(), soc.total_core_count()) == (2, 36, 108)


def test_selecting_twice_is_fine_and_changing_is_an_error():
    assert not is_backend_configured()
    set_backend_type(BackendType.Ascend910B)
    set_backend_type(BackendType.Ascend910B)
    with pytest.raises(ValueError, match="already set to Ascend910B, cannot change to Ascend950"):
        set_backend_type(BackendType.Ascend950)


def test_no_selection_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="Backend type not configured"):
        get_backend_type()


def test_use_backend_restores_what_was_selected():
    set_backend_type(BackendType.Ascend910B)
    with use_backend(BackendType.Ascend950) as backend:
        assert get_handler().get_pto_target_arch() == "a5"
        assert backend is get_backend_instance(BackendType.Ascend950)
    assert get_handler().get_extra_ptoas_flags() == ["--pto-arch", "a3"]


@pytest.mark.parametrize("source", [DataType.FP32, DataType.INT8, DataType.BF16])
def test_native_casts_never_name_the_source(source):
    for kind in BackendType:
        assert source not in get_backend_instance(kind).handler.native_casts[source]


def test_snapshot_names_the_backend_it_came_from(tmp_path):
    path = tmp_path / "backend.bin"
    Backend950.instance().export_to_file(path)
    assert Backend.import_from_file(path) is Backend950.instance()
    path.write_bytes(b"junk")
    with pytest.raises(ValueError, match="not a backend snapshot"):
        Backend.import_from_file(path)
