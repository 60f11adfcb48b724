"""Samples of operators that create, move, multiply, pick and sort."""

from __future__ import annotations

import numpy as np
import torch
from operator_sample import (
    BASIC,
    BF16,
    DTYPE_OF,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    UINT32,
    Draw,
    Number,
    array,
    levels,
    sample,
)
from pypto.ir import DataType, MemorySpace, PadValue

# -- creation ----------------------------------------------------------------------------------------------------


@sample("tile.create", "tensor.create", "tensor.create_l1")
def _created(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype((FP32, FP16, INT32))
    space = {"target_memory": MemorySpace.Vec} if name == "tile.create" else {}
    return [(draw.rows, draw.cols)], {"dtype": dtype, **space}, None


@sample(*levels("full"))
def _full(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype((FP32, INT32))
    number = draw.scalar(dtype)
    return [(draw.rows, draw.cols), number], {"dtype": dtype}, np.full((draw.rows, draw.cols), number)


@sample(*levels("ci"))
def _counting(name: str, draw: Draw) -> tuple:
    dtype, down = draw.dtype((INT32, INT16)), bool(draw.choice % 2)
    step = np.arange(draw.cols, dtype=np.int32).reshape(1, -1)
    return [Number(5, dtype), (1, draw.cols)], {"dtype": dtype, "descending": down}, 5 - step if down else 5 + step


@sample("tile.tri")
def _triangle(name: str, draw: Draw) -> tuple:
    upper = bool(draw.choice % 2)
    ones = np.ones((draw.rows, draw.cols))
    expected = np.triu(ones, 1) if upper else np.tril(ones, 1)
    return [Number(1, INT32), (draw.rows, draw.cols), None], {"dtype": FP32, "upper": upper}, expected


@sample(*levels("random"))
def _random(name: str, draw: Draw) -> tuple:
    return [1, 2, 3, 4, 5, 6, (draw.rows, draw.cols)], {"dtype": UINT32, "rounds": 10}, None


# -- movement and views ------------------------------------------------------------------------------------------


@sample("tile.load")
def _load(name: str, draw: Draw) -> tuple:
    memory = draw.cells(draw.dtype(BASIC), draw.rows + 3, draw.cols + 5)
    window, start = (draw.rows, draw.cols), (2, 3)
    expected = array(memory)[2 : 2 + draw.rows, 3 : 3 + draw.cols]
    return [memory, start, window, window], {"target_memory": MemorySpace.Vec}, expected


@sample("tile.store", "tensor.assemble")
def _store(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype((FP32, INT32))
    source, memory = draw.cells(dtype), draw.cells(dtype, draw.rows + 3, draw.cols + 5)
    expected = array(memory.clone())
    expected[1 : 1 + draw.rows, 4 : 4 + draw.cols] = array(source)
    operands = [source, (1, 4), memory] if name == "tile.store" else [memory, source, (1, 4)]
    return operands, {}, expected


@sample("tile.move")
def _move(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP16)
    return [a], {"target_memory": MemorySpace.Mat}, array(a)


@sample("tile.extract")
def _extract(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP16, draw.rows + 2, draw.cols + 2)
    return [a, 1, 2, (draw.rows, draw.cols)], {"target_memory": MemorySpace.Vec}, array(a)[1 : 1 + draw.rows, 2:]


@sample("tile.assemble")
def _assemble(name: str, draw: Draw) -> tuple:
    target, source = draw.cells(FP32), draw.cells(FP32, draw.rows, draw.cols // 2)
    expected = array(target.clone())
    expected[:, draw.cols - draw.cols // 2 :] = array(source)
    return [target, source, (0, draw.cols - draw.cols // 2)], {}, expected


@sample(*levels("concat"))
def _concat(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype(BASIC)
    a, b = draw.cells(dtype), draw.cells(dtype)
    return [a, b], {}, np.concatenate([array(a), array(b)], axis=1)


@sample(*levels("read"))
def _read(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32)
    return [a, (draw.rows - 1, draw.cols - 1)], {}, array(a)[-1, -1]


@sample(*levels("write"))
def _write(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32)
    expected = array(a.clone())
    expected[draw.rows - 1, 0] = 9
    return [a, (draw.rows - 1, 0), 9.0], {}, expected


@sample(*levels("fillpad"), "tile.fillpad_inplace")
def _fillpad(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32)
    return [a], {"pad_value": PadValue.zero}, array(a)


@sample(*levels("fillpad_expand"))
def _grown(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32)
    expected = np.pad(array(a), ((0, 2), (0, 8)))
    return [a, (draw.rows + 2, draw.cols + 8)], {"pad_value": PadValue.zero}, expected


@sample(*levels("slice"))
def _slice(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32, draw.rows + 2, draw.cols + 8)
    return [a, (draw.rows, draw.cols), (2, 8)], {}, array(a)[2:, 8:]


@sample(*levels("reshape"))
def _reshape(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32)
    return [a, (draw.cols, draw.rows)], {}, array(a).reshape(draw.cols, draw.rows)


@sample(*levels("transpose"), "tile.transpose_view")
def _transpose(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32)
    return [a] if name.endswith("view") else [a, 0, 1], {}, array(a).T


@sample(*levels("set_validshape"))
def _validshape(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32)
    return [a, 1, 2], {}, array(a)


@sample("tensor.dim")
def _dim(name: str, draw: Draw) -> tuple:
    return [draw.cells(FP32), 1], {}, draw.cols


@sample("tensor.view")
def _view(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32)
    return [a, (draw.cols, draw.rows)], {}, array(a).reshape(draw.cols, draw.rows)


@sample(*levels("reinterpret_view"))
def _reinterpret(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32)
    return [a], {"dtype": UINT32}, a.numpy().view(np.uint32)


# -- products ----------------------------------------------------------------------------------------------------

PRODUCTS = (FP32, FP16, BF16, INT8)


def _factors(draw: Draw) -> tuple[torch.Tensor, torch.Tensor, np.ndarray, torch.dtype]:
    dtype = draw.dtype(PRODUCTS)
    a, b = draw.cells(dtype, draw.rows, 16, low=-2, high=2), draw.cells(dtype, 16, draw.cols, low=-2, high=2)
    wide = torch.float32 if dtype.is_float() else torch.int32
    x, y = (array(v) if dtype.is_float() else array(v).astype(np.int32) for v in (a, b))
    return a, b, x @ y, wide


@sample("tile.matmul", "tile.matmul_acc", "tile.matmul_bias", "tile.batch_matmul", "tile.batch_matmul_acc")
def _matmul(name: str, draw: Draw) -> tuple:
    a, b, product, wide = _factors(draw)
    if "batch" in name:
        a, b, product = a.repeat(2, 1, 1), b.repeat(2, 1, 1), np.stack([product] * 2)
    if name.endswith("_acc"):
        accumulator = draw.cells(DTYPE_OF[wide], *product.shape)
        return [accumulator, a, b], {}, array(accumulator) + product
    if name.endswith("_bias"):
        bias = draw.cells(DTYPE_OF[wide], 1, draw.cols)
        return [a, b, bias], {}, product + array(bias)
    return [a, b], {}, product


@sample("tensor.matmul")
def _tensor_matmul(name: str, draw: Draw) -> tuple:
    a, b, product, _ = _factors(draw)
    out = FP32 if a.is_floating_point() else INT32
    flip = bool(draw.choice % 2)
    return [a, b.mT.contiguous() if flip else b], {"out_dtype": out, "b_trans": flip}, product


@sample("tensor.matmul_acc")
def _tensor_matmul_acc(name: str, draw: Draw) -> tuple:
    a, b, product, wide = _factors(draw)
    accumulator = draw.cells(DTYPE_OF[wide], *product.shape)
    return [accumulator, a.mT.contiguous(), b], {"a_trans": True}, array(accumulator) + product


@sample("tile.gemv", "tile.gemv_acc", "tile.gemv_bias")
def _gemv(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype(PRODUCTS)
    row, matrix = draw.cells(dtype, 1, 16, low=-2, high=2), draw.cells(dtype, 16, draw.cols, low=-2, high=2)
    wide = FP32 if dtype.is_float() else INT32
    product = (array(row).astype(np.float64) @ array(matrix).astype(np.float64)).astype(
        np.float64 if dtype.is_float() else np.int32
    )
    if name.endswith("bias"):
        bias = draw.cells(wide, 1, draw.cols)
        return [row, matrix, bias], {}, product + array(bias)
    if name.endswith("acc"):
        accumulator = draw.cells(wide, 16, draw.cols)
        return [accumulator, row, matrix], {}, None, ((1, draw.cols), None, None)
    return [row, matrix], {}, product


def _scaled(draw: Draw, *shape: int, axis: int) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """An FP8 payload, one power of two per 32 elements along ``axis``, and the numbers they stand for."""
    payload = draw.cells(DataType.FP8E4M3FN, *shape, low=-2, high=2)
    groups = [n // 32 if i == axis else n for i, n in enumerate(shape)]
    codes = draw.random.integers(125, 130, groups).astype(np.uint8)
    wide = payload.float().numpy().astype(np.float64) * np.repeat(2.0 ** (codes.astype(int) - 127), 32, axis=axis)
    return payload, torch.from_numpy(codes).view(torch.float8_e8m0fnu), wide


@sample("tile.matmul_mx", "tile.matmul_mx_acc", "tile.matmul_mx_bias")
def _matmul_mx(name: str, draw: Draw) -> tuple:
    a, a_scale, x = _scaled(draw, 16, 64, axis=1)
    b, b_scale, y = _scaled(draw, 64, 32, axis=0)
    operands, expected = [a, a_scale, b, b_scale], x @ y
    if name.endswith("acc"):
        accumulator = draw.cells(FP32, 16, 32)
        return [accumulator, *operands], {}, expected + array(accumulator)
    if name.endswith("bias"):
        bias = draw.cells(FP32, 1, 32)
        return [*operands, bias], {}, expected + array(bias)
    return operands, {}, expected


# -- gathers, scatters, sorting ----------------------------------------------------------------------------------


@sample("tile.gather")
def _gather(name: str, draw: Draw) -> tuple:
    a = draw.cells(draw.dtype(BASIC))
    index = torch.from_numpy(draw.random.integers(0, a.numel(), (draw.rows, draw.cols)).astype(np.int32))
    return [a, index, torch.zeros_like(index)], {}, array(a).reshape(-1)[index.numpy()]


@sample("tensor.gather")
def _tensor_gather(name: str, draw: Draw) -> tuple:
    a = draw.cells(draw.dtype(BASIC))
    index = torch.from_numpy(draw.random.integers(0, draw.cols, (draw.rows, draw.cols)).astype(np.int32))
    return [a, index], {"dim": -1}, np.take_along_axis(array(a), index.numpy(), axis=1)


@sample(*levels("gather_mask"))
def _gather_mask(name: str, draw: Draw) -> tuple:
    a = draw.cells(draw.dtype((FP32, FP16, INT32)), draw.rows, 16)
    pattern = draw.choice % 7 + 1
    start, step = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}[pattern]
    return [a], {"mask_pattern": pattern}, array(a)[:, start::step]


@sample("tile.gather_row", "tensor.gather_row")
def _gather_row(name: str, draw: Draw) -> tuple:
    target, memory = draw.cells(FP16), draw.cells(FP16, draw.rows + 4, draw.cols)
    expected = array(target.clone())
    expected[1:2] = array(memory)[3:4]
    return [target, memory, (1, 0), (3, 0), (1, draw.cols)], {}, expected


@sample("tile.scatter")
def _scatter(name: str, draw: Draw) -> tuple:
    target = draw.cells(draw.dtype(BASIC))
    source = draw.cells(DTYPE_OF[target.dtype], 1, draw.cols)
    index = torch.from_numpy(draw.random.permutation(target.numel())[: draw.cols].reshape(1, -1).astype(np.int32))
    index = index.to(torch.int16) if target.element_size() == 2 else index
    expected = array(target.clone()).reshape(-1)
    expected[index.numpy().reshape(-1)] = array(source).reshape(-1)
    return [target, source, index], {}, expected.reshape(target.shape)


@sample("tile.scatter_update", "tensor.scatter_update")
def _scatter_update(name: str, draw: Draw) -> tuple:
    target, source = draw.cells(FP32), draw.cells(FP32, 2, draw.cols)
    index = torch.from_numpy(draw.random.permutation(draw.rows)[:2].reshape(1, 2).astype(np.int32))
    expected = array(target.clone())
    expected[index.numpy().reshape(-1)] = array(source)
    return [target, index, source], {}, expected


@sample("tile.mscatter")
def _mscatter(name: str, draw: Draw) -> tuple:
    source, memory = draw.cells(FP32), draw.cells(FP32, 4 * draw.rows, draw.cols)
    index = draw.random.permutation(memory.numel())[: source.numel()].reshape(draw.rows, draw.cols).astype(np.int32)
    expected = array(memory.clone()).reshape(-1)
    expected[index.reshape(-1)] = array(source).reshape(-1)
    return [source, torch.from_numpy(index), memory], {}, expected.reshape(memory.shape)


@sample(*levels("sort32"))
def _sort32(name: str, draw: Draw) -> tuple:
    a = torch.from_numpy(draw.random.permutation(64).astype(np.float32).reshape(1, 64))
    index = torch.arange(64, dtype=torch.int32).to(torch.uint32 if name.startswith("tile.") else torch.int32)
    blocks = a.numpy().reshape(-1, 32)
    order = np.argsort(-blocks, axis=1, kind="stable")
    values = np.take_along_axis(blocks, order, axis=1).reshape(-1)
    places = (order + np.arange(2)[:, None] * 32).reshape(-1).astype(np.int32)
    return [a, index.reshape(1, 64)], {}, np.stack([values, places.view(np.float32)], axis=1).reshape(1, -1)


@sample("tile.aiv_shard")
def _shard(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32, 2 * draw.rows, draw.cols)
    return [a], {"split": 1}, None


# -- patterns, comparisons, pages ---------------------------------------------------------------------------------


@sample(*levels("scatter_mask"))
def _scatter_mask(name: str, draw: Draw) -> tuple:
    dtype = draw.dtype((FP32, FP16, INT32))
    start, step, pattern = ((0, 2, 1), (1, 2, 2), (3, 4, 6))[draw.choice % 3]
    target, source = draw.cells(dtype, draw.rows, 16), draw.cells(dtype, draw.rows, 16 // step)
    expected = array(target.clone())
    expected[:, start::step] = array(source)
    operands = [target, source] if name.startswith("tile.") else [source, target]
    return operands, {"mask_pattern": pattern}, expected


@sample("tensor.scatter")
def _tensor_scatter(name: str, draw: Draw) -> tuple:
    target, source = draw.cells(FP32), draw.cells(FP32, draw.rows, 4)
    index = np.stack([draw.random.permutation(draw.cols)[:4] for _ in range(draw.rows)]).astype(np.int32)
    expected = array(target.clone())
    np.put_along_axis(expected, index, array(source), axis=1)
    return [target, torch.from_numpy(index), source], {"dim": -1}, expected


@sample("tile.gatherb")
def _gatherb(name: str, draw: Draw) -> tuple:
    a = draw.cells(FP32, draw.rows, 64)
    blocks = draw.random.integers(0, draw.rows * 8, (draw.rows, 8))
    expected = array(a).reshape(-1, 8)[blocks].reshape(draw.rows, 64)
    return [a, torch.from_numpy(blocks * 32).to(torch.uint32)], {}, expected


@sample("tensor.paged_gather")
def _paged_gather(name: str, draw: Draw) -> tuple:
    memory = draw.cells(FP16, 8, 16)
    table = draw.random.permutation(4).astype(np.int32)
    index = draw.random.integers(0, 8, 8).astype(np.int32)
    rows = table[index // 2] * 2 + index % 2
    attrs = {"block_size": 2, "size": 16, "max_indices": 8}
    return [memory, torch.from_numpy(index), torch.from_numpy(table)], attrs, array(memory)[rows]


@sample(*levels("mrgsort_format1"))
def _merge_runs(name: str, draw: Draw) -> tuple:
    keys = draw.random.permutation(128).astype(np.float32)
    runs = -np.sort(-keys.reshape(4, 32), axis=1)
    places = np.arange(128, dtype=np.int32).view(np.float32)
    pairs = np.stack([runs.reshape(-1), places], axis=1)
    expected = pairs[np.argsort(-pairs[:, 0], kind="stable")].reshape(1, -1)
    return [torch.from_numpy(pairs.reshape(1, -1)), Number(64, INT32)], {}, expected


@sample(*levels("mrgsort_format2"))
def _merge_lists(name: str, draw: Draw) -> tuple:
    keys = -np.sort(-draw.random.permutation(64).astype(np.float32).reshape(2, 32), axis=1)
    lists = [np.stack([k, np.arange(32, dtype=np.int32).view(np.float32)], axis=1) for k in keys]
    merged = np.concatenate(lists)
    expected = merged[np.argsort(-merged[:, 0], kind="stable")].reshape(1, -1)
    scratch = [torch.zeros(1, 128)] if name.startswith("tile.") else []
    return [*(torch.from_numpy(pairs.reshape(1, -1)) for pairs in lists), *scratch], {}, expected


@sample(*levels("img2col"))
def _unfolded(name: str, draw: Draw) -> tuple:
    """A 3x3 kernel over a 6x6 image of 16 channels: row m is output pixel m, columns are (channel block, tap, lane)."""
    image = draw.cells(FP16, 36, 16)
    windows = array(image).reshape(6, 6, 16)
    rows = [windows[y : y + 3, x : x + 3].reshape(-1) for y in range(4) for x in range(4)]
    attrs = {"image_shape": (6, 6), "kernel_size": (3, 3)}
    return [image, 0, 0, (16, 144)], attrs, np.stack(rows)


# -- positions that satisfy a comparison, rows of global memory, quantisation ---------------------------------------

COMPARED = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


@sample(*levels("gather_compare"))
def _positions(name: str, draw: Draw) -> tuple:
    dtype, mode, offset, width = draw.dtype(BASIC), draw.choice % 6, draw.choice % 3, 4
    a = draw.cells(dtype, low=-1, high=1)
    key = 0.5 if dtype.is_float() else 1
    hits = COMPARED[mode](array(a), key)
    positions = np.zeros((draw.rows, width), dtype=np.int32)
    for row, line in enumerate(hits):
        found = [col + offset for col, hit in enumerate(line) if hit][:width]
        positions[row, : len(found)] = found
    counts = hits.sum(axis=1).reshape(1, -1).astype(np.int32)
    scratch = [torch.zeros_like(a)] if name.startswith("tile.") else []
    attrs = {"cmp_mode": mode, "offset": offset, "out_cols": width, "count_dtype": INT32}
    return [a, Number(key, dtype), *scratch], attrs, (positions, counts)


@sample("tile.mgather")
def _global_rows(name: str, draw: Draw) -> tuple:
    """Rows or elements at positions that may lie outside, where the policy says what is read."""
    elements, policy = draw.choice % 2, (1, 2, 3)[draw.choice % 3]
    memory = draw.cells(draw.dtype(BASIC), 8, draw.cols)
    size = memory.numel() if elements else 8
    places = draw.random.integers(-size, 2 * size, (draw.rows, draw.cols) if elements else (1, draw.rows))
    inside = (places >= 0) & (places < size)
    read = places % size if policy == 2 else places.clip(0, size - 1)
    table = array(memory).reshape(-1) if elements else array(memory)
    expected = table[read if elements else read.reshape(-1)]
    if policy == 3:
        expected = np.where(inside if elements else inside.reshape(-1, 1), expected, 0)
    index = torch.from_numpy(places.astype(np.int32))
    return [memory, index], {"coalesce": elements, "gather_oob": policy}, expected


@sample("tile.tquant_mx")
def _quantised(name: str, draw: Draw) -> tuple:
    """Whole numbers times a power of two per group are represented exactly: the codes follow from the largest one."""
    axis = draw.choice % 2
    exponents = draw.random.integers(-3, 4, (32, 2))
    numbers = draw.random.integers(-7, 8, (32, 64)).astype(np.float64)
    numbers[:, [0, 32]] = 7
    values = numbers * np.repeat(2.0**exponents, 32, axis=1)
    codes = (exponents + 2 - 8 + 127).astype(np.uint8)  # 7 * 2**e lies in [4, 8) * 2**e
    payload = values * np.repeat(2.0 ** (127 - codes.astype(int)), 32, axis=1)
    scales = 2.0 ** (codes.astype(int) - 127)
    expected = (payload, scales) if axis else (payload.T, scales.T)
    return [torch.from_numpy(values.astype(np.float32))], {"group_axis": axis}, expected
