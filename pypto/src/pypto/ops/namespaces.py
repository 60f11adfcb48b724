"""Operator functions by namespace: ``TILE.add``, ``TENSOR.matmul``, ``SYSTEM.bar_all``, ``PLD.tensor.put``, ..."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pypto.ir.callers import caller_span
from pypto.ir.node import replace
from pypto.ir.scalar_ops import max_, min_
from pypto.ops.functions import plain_function, public_function
from pypto.ops.masks import MaskPattern
from pypto.ops.registry import all_ops


class Namespace(SimpleNamespace):
    """Functions by Python name; ``__all__`` lists them."""

    @property
    def __all__(self) -> list[str]:
        return sorted(self.__dict__)


def _namespace(prefix: str) -> Namespace:
    functions: dict[str, Any] = {}
    for definition in all_ops():
        head, _, leaf = definition.name.rpartition(".")
        if head != prefix:
            continue
        if definition.python_name:
            function = public_function(definition)
            for name in (definition.python_name, *definition.aliases):
                functions.setdefault(name, function)
        if definition.python_name not in (leaf, f"{leaf}_"):
            functions[leaf] = plain_function(definition)
    return Namespace(**functions)


TILE = _namespace("tile")
TENSOR = _namespace("tensor")
SYSTEM = _namespace("system")
ARRAY = _namespace("array")
PREFETCH = _namespace("prefetch")
PLD = Namespace(system=_namespace("pld.system"), tensor=_namespace("pld.tensor"), tile=_namespace("pld.tile"))


def _scalar_max(lhs: Any, rhs: Any, *, span: Any = None) -> Any:
    """The larger of two scalars, as an expression."""
    return max_(lhs, rhs, span or caller_span())


def _scalar_min(lhs: Any, rhs: Any, *, span: Any = None) -> Any:
    """The smaller of two scalars, as an expression."""
    return min_(lhs, rhs, span or caller_span())


def _identity(tensor: Any, *, span: Any = None) -> Any:
    """The operand; the parser reads the mark."""
    return tensor


_task_dummy = SYSTEM.task_dummy


def _task_barrier(*, deps: Any, span: Any = None) -> Any:
    """An empty task that completes after all of its dependencies; None entries are skipped."""
    call = _task_dummy(deps=(), span=span or caller_span())
    edges = [d.unwrap() if hasattr(d, "unwrap") else d for d in deps if d is not None]
    return replace(call, attrs={**call.attrs, "manual_dep_edges": edges})


def _syncall_soft(core_type: str, gm_workspace: Any, used_cores: Any = None, *, span: Any = None) -> Any:
    """The soft barrier of all cores, by position; without ``used_cores`` the launch gives the count."""
    cores = 0 if used_cores is None else used_cores
    place = span or caller_span()
    return SYSTEM.syncall(core_type=core_type, mode="soft", gm_workspace=gm_workspace, used_cores=cores, span=place)


SYSTEM.task_dummy = _task_barrier
SYSTEM.syncall_soft = _syncall_soft
TILE.max, TILE.min, TILE.MaskPattern = _scalar_max, _scalar_min, MaskPattern
TENSOR.no_dep = TENSOR.dump_tag = _identity
for _name in ("tpush_to_aiv", "tpush_to_aic", "tpop_from_aic", "tpop_from_aiv"):
    setattr(SYSTEM, _name, getattr(TILE, _name))
