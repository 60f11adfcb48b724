"""Synchronisation, task ids, launch queries, scalar arrays, asynchronous prefetch."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import ArgEffect, PipeType
from pypto.ir.expr import ConstInt, as_expr, const_index
from pypto.ir.types import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    PrefetchAsyncContextType,
    ScalarType,
    Type,
    scalar_type,
)
from pypto.ops import shapes as S
from pypto.ops.kinds import Array, Attr, Handle, Scalar, Tensor, Tuple
from pypto.ops.memory_specs import BOTH
from pypto.ops.registry import op
from pypto.ops.rules import NOTHING, elements, require

# --- pipes and barriers ------------------------------------------------------------------------------------------


def _flag(name: str, doc: str) -> None:
    def rule(*, set_pipe: Attr[int], wait_pipe: Attr[int], event_id: Attr[int]) -> Type:
        for what, pipe in (("set_pipe", set_pipe), ("wait_pipe", wait_pipe)):
            require(0 <= pipe < len(PipeType), f"{name} requires {what} to be a PipeType, got {pipe}")
        return NOTHING

    rule.__doc__ = doc
    op(name, family="sync")(rule)


_flag("system.sync_src", "Signal from one pipe of a core to another.")
_flag("system.sync_dst", "Wait of one pipe of a core for another.")


def _barrier(leaf: str, doc: str) -> None:
    def rule() -> Type:
        return NOTHING

    rule.__doc__ = doc
    op(f"system.{leaf}", family="sync", backends=BOTH)(rule)


_barrier("bar_all", "Barrier over all pipes.")
_barrier("bar_v", "Barrier of the vector pipe.")
_barrier("bar_m", "Barrier of the matrix pipe.")
_barrier("fence", "Ordering fence of global memory.")


def _cacheinvalid_front(tensor: Any = None, shapes: Any = None, offsets: Any = None) -> tuple:
    name = "system.cacheinvalid"
    if tensor is None:
        require(shapes is None and offsets is None, f"{name}: the whole-GM form takes no shapes/offsets")
        return (), {}
    for what, part in (("shapes", shapes), ("offsets", offsets)):
        members = part if isinstance(part, (list, tuple)) else ()
        if any(isinstance(m, (bool, float)) for m in members):
            raise TypeError(f"{name}: {what} must be integers")
    return [p for p in (tensor, shapes, offsets) if p is not None], {}


@op("system.cacheinvalid", family="sync", level="extended", front=_cacheinvalid_front, backends=BOTH)
def cacheinvalid(tensor: Tensor = None, shapes: Tuple = None, offsets: Tuple = None) -> Type:
    """Invalidate the scalar data cache, or the line that holds the start of a region."""
    name = "system.cacheinvalid"
    if tensor is None:
        return NOTHING
    require((shapes is None) == (offsets is None), f"{name} requires shapes and offsets together, or neither")
    for what, part in (("shapes", shapes), ("offsets", offsets)):
        if part is None:
            continue
        members = elements(part)
        rank = len(tensor.type.shape)
        require(len(members) == rank, f"{name}: {what} must match tensor rank {rank}, got {len(members)}")
        for member in members:
            kind = member.type
            require(isinstance(kind, ScalarType) and kind.dtype.is_int(), f"{name} requires integer {what}")
    return NOTHING


_SYNC_CORES = ("aiv_only", "aic_only", "mix")


def _syncall_front(
    *, core_type: str = "mix", mode: str = "hard", gm_workspace: Any = None, used_cores: Any = None
) -> tuple:
    kwargs: dict[str, Any] = {"core_type": core_type}
    if mode != "hard":
        kwargs["mode"] = mode
    require(core_type in _SYNC_CORES, f"system.syncall requires core_type to be one of {', '.join(_SYNC_CORES)}")
    if mode == "soft":
        if gm_workspace is None or used_cores is None:
            raise ValueError(
                "system.syncall in soft mode requires gm_workspace and explicit used_cores (0 derives the count)"
            )
        if isinstance(used_cores, (bool, float)):
            raise TypeError(f"system.syncall: used_cores must be an int or an INT32 scalar, got {used_cores}")
        if isinstance(used_cores, int):
            used_cores = ConstInt(used_cores, DataType.INT32)
        if isinstance(used_cores, ConstInt):
            count = used_cores.value
            require(0 <= count < 2**31, f"system.syncall requires used_cores in the INT32 range from 0, got {count}")
        derived = isinstance(used_cores, ConstInt) and used_cores.value == 0
        return ((gm_workspace,) if derived else (gm_workspace, used_cores)), kwargs
    if gm_workspace is not None or used_cores is not None:
        raise ValueError("system.syncall in hard mode takes neither gm_workspace nor used_cores")
    return (), kwargs


def _syncall_effect(kwargs: dict) -> ArgEffect:
    return ArgEffect.ReadWrite if kwargs.get("mode") == "soft" else ArgEffect.Read


@op(
    "system.syncall", family="sync", level="extended", front=_syncall_front, backends=BOTH,
    effects={0: _syncall_effect}, keep=("core_type",),
)  # fmt: skip
def syncall(
    gm_workspace: Tensor = None, used_cores: Scalar = None, *, core_type: Attr[str] = "mix", mode: Attr[str] = "hard"
) -> Type:
    """Barrier of all participating cores; ``soft`` counts arrivals in a zeroed INT32 workspace."""
    name = "system.syncall"
    require(core_type in _SYNC_CORES, f"{name} requires core_type to be one of {', '.join(_SYNC_CORES)}")
    require(mode in ("hard", "soft"), f"{name} requires mode hard or soft, got {mode!r}")
    if mode == "hard":
        require(gm_workspace is None, f"{name} in hard mode takes neither gm_workspace nor used_cores")
        return NOTHING
    require(gm_workspace is not None, f"{name} in soft mode requires gm_workspace")
    kind = gm_workspace.type
    require(kind.dtype == DataType.INT32, f"{name} requires an INT32 workspace, but got {kind.dtype}")
    if used_cores is not None:
        have = used_cores.type.dtype
        require(have == DataType.INT32, f"{name} requires used_cores to be an int or an INT32 scalar, got {have}")
    return NOTHING


def _event(event_id: Any, pipe: Any, ffts_mode: int | None, core_type: str | None) -> tuple[tuple, dict[str, Any]]:
    kwargs: dict[str, Any] = {"pipe": int(pipe)}
    operands: tuple = ()
    value = event_id.value if isinstance(event_id, ConstInt) else event_id
    if isinstance(value, int) and not isinstance(value, bool):
        kwargs["event_id"] = value
    else:
        operands = (as_expr(event_id),)
    if ffts_mode is not None:
        kwargs["ffts_mode"] = ffts_mode
    if core_type is not None:
        kwargs["core_type"] = core_type
    return operands, kwargs


def _sync_set_front(
    event_id: Any, *, pipe: PipeType, ffts_mode: int | None = None, core_type: str | None = None
) -> tuple:
    return _event(event_id, pipe, ffts_mode, core_type)


def _sync_wait_front(event_id: Any, *, pipe: PipeType, core_type: str | None = None) -> tuple:
    return _event(event_id, pipe, None, core_type)


def _check_event(name: str, event: Any, event_id: int | None, pipe: int, core_type: str | None) -> None:
    require((event is None) != (event_id is None), f"{name} requires one event id, static or dynamic")
    require(event_id is None or 0 <= event_id <= 13, f"{name} requires event_id in 0 to 13, got {event_id}")
    require(0 <= pipe < len(PipeType), f"{name} requires pipe to be a PipeType, got {pipe}")
    require(core_type in (None, "aic", "aiv"), f"{name} requires core_type aic or aiv, got {core_type!r}")
    if event is not None:
        require(
            event.type.dtype == DataType.INDEX, f"{name} requires a ScalarType(INDEX) event id, got {event.type.dtype}"
        )


@op("system.sync_set", family="sync", level="extended", front=_sync_set_front, backends=BOTH)
def sync_set(
    event_id_dyn: Scalar = None,
    *,
    pipe: Attr[int],
    event_id: Attr[int] = None,
    ffts_mode: Attr[int] = None,
    core_type: Attr[str] = None,
) -> Type:
    """Set an event between the cube and vector cores."""
    _check_event("system.sync_set", event_id_dyn, event_id, pipe, core_type)
    require(ffts_mode is None or 0 <= ffts_mode <= 2, f"system.sync_set requires ffts_mode 0 to 2, got {ffts_mode}")
    return NOTHING


@op("system.sync_wait", family="sync", level="extended", front=_sync_wait_front, backends=BOTH)
def sync_wait(
    event_id_dyn: Scalar = None, *, pipe: Attr[int], event_id: Attr[int] = None, core_type: Attr[str] = None
) -> Type:
    """Wait for an event between the cube and vector cores."""
    _check_event("system.sync_wait", event_id_dyn, event_id, pipe, core_type)
    return NOTHING


@op("system.set_ffts", family="sync", level="extended", backends=BOTH, effects={})
def set_ffts(workspace: Tensor) -> Type:
    """Declare the workspace of the hardware synchroniser."""
    name, kind = "system.set_ffts", workspace.type
    require(kind.dtype == DataType.INT64, f"{name} requires an INT64 workspace, but got {kind.dtype}")
    require(len(kind.shape) == 1, f"{name} requires a 1-D workspace, got {S.shape_text(kind.shape)}")
    size = S.const(kind.shape[0])
    require(size is not None and size >= 256, f"{name} requires a static workspace of at least 256 elements")
    return NOTHING


# --- tasks -------------------------------------------------------------------------------------------------------


@op("system.task_invalid", family="task")
def task_invalid() -> Type:
    """The task id of no task."""
    return scalar_type(DataType.TASK_ID)


@op("system.task_is_valid", family="task")
def task_is_valid(task_id: Scalar) -> Type:
    """True unless the task id is the one of no task."""
    have = task_id.type.dtype
    require(have == DataType.TASK_ID, f"system.task_is_valid requires a TASK_ID scalar, but got {have}")
    return scalar_type(DataType.BOOL)


def _dummy_front(*, deps: Any) -> tuple:
    """The dependencies travel as an attribute of the call, not as operands."""
    return (), {}


@op("system.task_dummy", family="task", front=_dummy_front)
def task_dummy() -> Type:
    """An empty task that completes after all of its dependencies."""
    return scalar_type(DataType.TASK_ID)


@op("system.available_cluster_count", family="launch")
def available_cluster_count() -> Type:
    """Usable cube clusters at run time."""
    return scalar_type(DataType.INT32)


@op("system.available_aiv_count", family="launch")
def available_aiv_count() -> Type:
    """Usable vector cores at run time."""
    return scalar_type(DataType.INT32)


# --- scalar arrays -----------------------------------------------------------------------------------------------


def _array_front(extent: Any, dtype: DataType) -> tuple:
    if isinstance(extent, (bool, float)):
        raise TypeError(f"array.create: extent must be an int, got {extent}")
    return (const_index(extent) if isinstance(extent, int) else extent,), {"dtype": dtype}


@op(
    "array.create", family="array", front=_array_front, orchestration=True, backends=BOTH,
    torch=lambda extent, dtype: [0] * extent,
)  # fmt: skip
def array_create(extent: Scalar, dtype: Attr[DataType]) -> Type:
    """An uninitialised on-core array of integers, booleans or task ids."""
    require(S.const(extent) is not None, "array.create requires a compile-time extent")
    return ArrayType(dtype, extent)


@op(
    "array.get_element", family="array", orchestration=True, backends=BOTH, torch=lambda array, index: array[int(index)]
)  # fmt: skip
def array_get_element(array: Array, index: Scalar) -> Type:
    """The element at an index."""
    _check_array_index("array.get_element", array, index)
    return scalar_type(array.type.dtype)


def _check_array_index(name: str, array: Any, index: Any) -> None:
    require(index.type.dtype.is_int(), f"{name} requires an integer index, got {index.type.dtype}")
    value, extent = S.const(index), S.const(array.type.extent)
    if value is not None and extent is not None and not 0 <= value < extent:
        raise ValueError(f"{name}: index {value} is outside the array of {extent} elements")


def _update_front(array: Any, index: Any, value: Any) -> tuple:
    dtype = getattr(as_expr(array).type, "dtype", None)
    if dtype is not None and dtype.is_int():
        # A written number takes the element type; a bool stays a bool.
        if isinstance(value, ConstInt) and value.dtype == DataType.INDEX:
            value = ConstInt(value.value, dtype, value.span)
        elif isinstance(value, int) and not isinstance(value, bool):
            value = ConstInt(value, dtype)
    return (array, index, value), {}


def _updated(array: Any, index: Any, value: Any) -> Any:
    out = list(array)
    out[int(index)] = value
    return out


@op(
    "array.update_element", family="array", front=_update_front, orchestration=True, backends=BOTH,
    effects={0: ArgEffect.ReadWrite},
    result_is_arg=0, torch=_updated,
)  # fmt: skip
def array_update_element(array: Array, index: Scalar, value: Scalar) -> Type:
    """The array with one element replaced (in place underneath)."""
    name = "array.update_element"
    _check_array_index(name, array, index)
    have, want = value.type.dtype, array.type.dtype
    index_like = have == DataType.INDEX and want.is_int()
    require(have == want or index_like, f"{name} requires a value of dtype {want}, but got {have}")
    return array.type


# --- prefetch ----------------------------------------------------------------------------------------------------


def _prefetch(leaf: str, **facts: Any) -> Any:
    return op(f"prefetch.{leaf}", family="prefetch", level="extended", core_affinity="vector", backends=BOTH, **facts)


def _require_kind(name: str, operand: Any, kind: type, what: str) -> None:
    require(isinstance(operand.type, kind), f"{name} requires {what}, but got {type(operand.type).__name__}")


@_prefetch("make_context")
def prefetch_make_context() -> Type:
    """A handle bound to the asynchronous copy engine."""
    return PrefetchAsyncContextType.get()


@_prefetch("async_prefetch")
def prefetch_async_prefetch(src: Tensor, ctx: Handle) -> Type:
    """Start pulling a contiguous row of global memory into the shared cache."""
    name = "prefetch.async_prefetch"
    _require_kind(name, ctx, PrefetchAsyncContextType, "a prefetch context")
    dims = src.type.shape
    require(S.consts(dims) is not None, f"{name} requires a static shape, got {S.shape_text(dims)}")
    require(
        all(S.const(d) == 1 for d in dims[:-1]),
        f"{name} requires all dimensions but the last to be 1, got {S.shape_text(dims)}",
    )
    stride = src.type.tensor_view.stride if src.type.tensor_view is not None else ()
    require(
        not stride or not S.provably_different(stride[-1], const_index(1)),
        f"{name} requires a contiguous source, got strides {S.shape_text(stride)}",
    )
    return AsyncEventType.get()


@_prefetch("session")
def prefetch_session(ctx: Handle) -> Type:
    """The session of a prefetch context."""
    _require_kind("prefetch.session", ctx, PrefetchAsyncContextType, "a prefetch context")
    return AsyncSessionType.get()


@_prefetch("wait")
def prefetch_wait(event: Handle, session_handle: Handle) -> Type:
    """Wait for a prefetch; the value is true."""
    _require_kind("prefetch.wait", event, AsyncEventType, "a prefetch event")
    _require_kind("prefetch.wait", session_handle, AsyncSessionType, "a prefetch session")
    return scalar_type(DataType.BOOL)
