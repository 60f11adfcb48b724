"""Checks of a function-level vector split before the kernel is taken apart."""

from __future__ import annotations

from pypto.errors import user_error
from pypto.ir.enums import SplitMode
from pypto.ir.expr import const_value
from pypto.ir.program import Function
from pypto.passes.lib.core_affinity import is_cube_space, space_of
from pypto.passes.lib.walk import iter_calls


def check_split_transposes(function: Function) -> None:
    """A transpose moves data across the split axis, which two lanes that share nothing cannot do.

    Raises:
        ValueError: names the transpose and the two ways out.
    """
    split = function.split
    if split is None or split is SplitMode.NONE or function.attrs.get("split_aiv_region_validated"):
        return
    if function.attrs.get("split_aiv"):
        return
    axis = 0 if split is SplitMode.UP_DOWN else 1
    for stmt, call in iter_calls(function.body):
        if call.op.name != "tile.transpose" or is_cube_space(space_of(call.args[0])):
            continue
        shape = call.args[0].type.shape
        if len(shape) == 2 and const_value(shape[axis]) != 1:
            name = getattr(getattr(stmt, "var", None), "name_hint", "tile.transpose")
            raise user_error(
                f"kernel '{function.name}': tile.transpose '{name}' swaps the split axis of a {split.name} "
                "split, so each lane would need the other half. Drop the split (pl.SplitMode.NONE), or replace the "
                "transpose by a column slice of the source",
                span=stmt.span,
            )
