"""Cross-core pipes: sides, splits, flags, reserved buffers (section 5.12)."""

from __future__ import annotations

from ..dialect import types as T
from ..dialect.ir import Function, Operation
from ..passes.pipes import MAX_FLAG_IDS, effective_slots, initialize_ops, is_pipe_use
from .checker import Checker, rule

_CUBE_OPS = frozenset(
    "pto." + n for n in ("aic_initialize_pipe", "tpush_to_aiv", "tpop_from_aiv", "tfree_from_aiv", "talloc_to_aiv")
)
_VECTOR_OPS = frozenset(
    "pto." + n for n in ("aiv_initialize_pipe", "tpush_to_aic", "tpop_from_aic", "tfree_from_aic", "talloc_to_aic")
)


@rule(*(name.removeprefix("pto.") for name in _CUBE_OPS | _VECTOR_OPS))
def _side(c: Checker, op: Operation) -> None:
    wanted = "cube" if op.name in _CUBE_OPS else "vector"
    if c.core not in (wanted, None) or (c.core is None and c.function is not None and c.section is None):
        c.fail(op, f"must be inside a {wanted} kernel function or section",
               f"give the function attributes {{pto.kernel_kind = #pto.kernel_kind<{wanted}>}}")  # fmt: skip


@rule("aic_initialize_pipe", "aiv_initialize_pipe")
def _initialize(c: Checker, op: Operation) -> None:
    mask = op.attrs.get("dir_mask")
    if mask not in (1, 2, 3):
        c.fail(op, f"expects 'dir_mask' to be 1, 2, or 3, got {mask}")
    size = op.attrs.get("slot_size")
    if size is None or size <= 0:
        c.fail(op, f"expects 'slot_size' to be a positive number of bytes, got {size}")
    local = op.attrs.get("local_slot_num")
    if local is not None:
        if c.arch == "a5":
            c.fail(op, "'local_slot_num' is only supported for a2/a3 frontend pipe lowering")
        if not 1 <= local <= effective_slots(op):
            c.fail(op, f"expects 'local_slot_num' to be between 1 and slot_num ({effective_slots(op)}), got {local}")
    if not op.named:
        c.fail(op, "expects at least one buffer operand")
    if mask & 1 and "c2v_consumer_buf" not in op.named and "gm_slot_tensor" not in op.named:
        c.fail(op, "expects 'c2v_consumer_buf' for a C2V pipe")
    if mask & 2 and "v2c_consumer_buf" not in op.named and "gm_slot_tensor" not in op.named:
        c.fail(op, "expects 'v2c_consumer_buf' for a V2C pipe")


@rule("tpush_to_aiv", "tpush_to_aic", "tpop_from_aic", "tpop_from_aiv", "tfree_from_aic", "tfree_from_aiv")
def _split(c: Checker, op: Operation) -> None:
    split = op.attrs.get("split", 0)
    if split not in (0, 1, 2, 3, 4):
        c.fail(op, f"expects 'split' to be 0, 1, 2, 3, or 4, got {split}")


@rule("tpush_to_aiv", "tpush_to_aic")
def _push(c: Checker, op: Operation) -> None:
    t, wanted = op.ins[0].type, "acc" if op.name == "pto.tpush_to_aiv" else "vec"
    if isinstance(t, T.TileType) and t.loc != wanted:
        c.fail(
            op, "tile type must map to a supported producer pipe",
            f"only '{wanted}' tiles can be sent to the other core, got '{t.loc}'; load the tensor into the memory of "
            "the core that uses it",
        )  # fmt: skip


@rule("tpop_from_aic", "tpop_from_aiv")
def _pop(c: Checker, op: Operation) -> None:
    t = op.result.type
    if op.ins and len(op.ins) != 2:
        c.fail(op, f"expects valid_row and valid_col operands in pairs, got {len(op.ins)}")
    if op.ins and not (isinstance(t, T.TileType) and t.v_row == T.DYNAMIC and t.v_col == T.DYNAMIC):
        c.fail(
            op, "expects tile result to have dynamic validShape (?, ?) when valid_row/valid_col operands are provided"
        )


@rule("reserve_buffer")
def _reserve(c: Checker, op: Operation) -> None:
    for key in ("name", "size", "location"):
        if key not in op.attrs:
            c.fail(op, f"requires attribute '{key}'")
    if op.attrs["size"] <= 0:
        c.fail(op, f"expects 'size' to be positive, got {op.attrs['size']}")
    space = op.attrs["location"].value
    if space not in ("vec", "mat"):
        c.fail(op, f"expects 'location' to be vec or mat, got {space}")


@rule("import_reserved_buffer")
def _import(c: Checker, op: Operation) -> None:
    for key in ("name", "peer_func"):
        if key not in op.attrs:
            c.fail(op, f"requires attribute '{key}'")
    peer = c.module.function(op.attrs["peer_func"].name)
    if peer is None:
        c.fail(op, f"expects 'peer_func' to reference an existing func.func, got @{op.attrs['peer_func'].name}")
    names = [o.attrs.get("name") for o in peer.body.walk() if o.name == "pto.reserve_buffer"] if peer.body else []
    if op.attrs["name"] not in names:
        known = ", ".join(f"'{n}'" for n in names) or "none"
        c.fail(op, f"expects @{peer.name} to reserve a buffer named '{op.attrs['name']}'", f"it reserves: {known}")


def check_function_pipes(c: Checker, fn: Function) -> None:
    """Rules over one function: unique ids and names, one split family per pipe, hardware flags, an initialised pipe."""
    pipes: dict[int, Operation] = {}
    flags = 0
    for op in initialize_ops(fn):
        pipe = op.attrs.get("id", 0)
        if pipe in pipes:
            c.fail(op, f"expects 'id' to be unique among the pipes of a function, got a second {pipe}")
        pipes[pipe] = op
        flags += 4 if op.attrs["dir_mask"] == 3 else 2
        if flags > MAX_FLAG_IDS:
            c.fail(
                op, f"requires all pipe components in a function to fit within {MAX_FLAG_IDS} hardware flag ids, "
                f"needs {flags}",
            )  # fmt: skip
    splits: dict[int, Operation] = {}
    reserved: set[str] = set()
    imported: set[tuple[str, str]] = set()
    for op in fn.body.walk():
        if op.name == "pto.reserve_buffer":
            if op.attrs["name"] in reserved:
                c.fail(op, f"expects 'name' to be unique in a function, got a second '{op.attrs['name']}'")
            reserved.add(op.attrs["name"])
        elif op.name == "pto.import_reserved_buffer":
            pair = (op.attrs["name"], op.attrs["peer_func"].name)
            if pair in imported:
                c.fail(op, f"expects ('name', 'peer_func') to be unique in a function, got a second '{pair[0]}'")
            imported.add(pair)
        elif is_pipe_use(op):
            _check_use(c, op, pipes, splits)


def _check_use(c: Checker, op: Operation, pipes: dict[int, Operation], splits: dict[int, Operation]) -> None:
    pipe = op.attrs.get("id", 0)
    if pipe not in pipes:
        c.fail(op, f"uses pipe id {pipe}, which no initialize_pipe of this function declares")
    split = op.attrs.get("split", 0)
    first = splits.setdefault(pipe, op)
    if (first.attrs.get("split", 0) == 0) != (split == 0):
        c.fail(
            op, "cannot mix 'split = 0' with 'split = 1', 'split = 2', 'split = 3', or 'split = 4' "
            "on the same logical pipe",
        )  # fmt: skip
    nosplit = pipes[pipe].attrs.get("nosplit")
    if nosplit is True and split != 0:
        c.fail(op, "expects 'split = 0' because the pipe says 'nosplit = true'")
    if nosplit is False and split == 0:
        c.fail(op, "expects 'split' to be 1 to 4 because the pipe says 'nosplit = false'")
    if split in (3, 4) and pipes[pipe].attrs["dir_mask"] != 1:
        c.fail(op, "odd splits (3, 4) need a unidirectional C2V pipe")


def check_peers(c: Checker) -> None:
    """Both sides of a pipe that share a reserved buffer agree on direction, slot size and slot count."""
    owners: dict[str, list[Operation]] = {}
    for fn in c.module.functions:
        for op in initialize_ops(fn) if fn.body is not None else ():
            for value in op.named.values():
                source = value.owner
                if source is not None and source.name in ("pto.reserve_buffer", "pto.import_reserved_buffer"):
                    owners.setdefault(source.attrs["name"], []).append(op)
    for name, ops in owners.items():
        first = ops[0]
        for other in ops[1:]:
            for key, ours, theirs in (
                ("dir_mask", first.attrs["dir_mask"], other.attrs["dir_mask"]),
                ("slot_size", first.attrs["slot_size"], other.attrs["slot_size"]),
                ("slot_num", effective_slots(first), effective_slots(other)),
            ):
                if ours != theirs:
                    c.fail(other, f"expects both sides of the pipe over '{name}' to have the same {key}, "
                           f"got {theirs} and {ours}")  # fmt: skip
