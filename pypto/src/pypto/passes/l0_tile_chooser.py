"""Choice of the L0 tile of a matrix product: the legal (m, n, k) with the smallest modelled wall time.

The model takes the larger of load and multiply time and adds the time to drain the accumulator. The output-stationary
schedule comes first; schedules that hold one operand, or keep two accumulators, are considered when the whole problem
does not fit and win only with a strictly smaller wall.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import Enum
from functools import lru_cache

from pypto.errors import user_error


class Stationarity(Enum):
    """What stays in L0 while the rest streams."""

    OutputStationary = 0
    AStationary = 1
    BStationary = 2


@dataclass
class L0TileConfig:
    """The problem, the buffers and the cost constants (those of 910B by default). Sizes in bytes, times in cycles."""

    M: int = 0
    N: int = 0
    K: int = 0
    l0a_bytes: int = 64 * 1024
    l0b_bytes: int = 64 * 1024
    l0c_bytes: int = 128 * 1024
    bytes_a: int = 2
    bytes_b: int = 2
    bytes_c: int = 4
    min_m: int = 16
    min_n: int = 16
    min_k: int = 16
    align_m: int = 16
    align_n: int = 16
    align_k: int = 16
    l0c_align_m: int = 16
    box_align_m: int = 1
    box_align_n: int = 1
    max_n: int = 0
    max_n_pipelined: int = 0
    max_n_nested_pipelined: int = 0
    allow_padding: bool = False
    allow_k_boundary: bool = False
    allow_a_stationary: bool = False
    allow_b_stationary: bool = False
    allow_double_buffer_c: bool = False
    c_read: bool = False
    bw_a: float = 129.7
    bw_b: float = 85.4
    bw_drain: float = 118.0
    drain_fixed_cycles: float = 164.0
    drain_row_cycles: float = 4.45
    drain_penalty_cycles: float = 2.6
    drain_c0_bytes: int = 32
    mad_head: int = 21
    mad_k_fractal_bytes: int = 32
    mad_fp32_passes: int = 2


@dataclass(frozen=True)
class L0TileResult:
    """The chosen tile and what the model says about it."""

    m: int
    n: int
    k: int
    stationarity: Stationarity
    os_holds_a: bool
    double_buffer_c: bool
    estimated_traffic_bytes: int
    estimated_cost_cycles: int
    padded_compute_volume: int
    perf_hint: str


def choose_l0_tile(config: L0TileConfig) -> L0TileResult:
    """The best tile for ``config``.

    Raises:
        ValueError: an impossible configuration, or no legal tile.
    """
    return _choose(astuple(config))


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


def _align(a: int, step: int) -> int:
    return _cdiv(a, step) * step


@lru_cache(maxsize=1024)
def _choose(fields: tuple) -> L0TileResult:
    c = L0TileConfig(*fields)
    _check(c)
    base = _best(c, Stationarity.OutputStationary, double_c=False)
    if base is None:
        raise user_error(
            f"no legal L0 tile for M={c.M}, N={c.N}, K={c.K}: K must be a multiple of {c.align_k} and one "
            f"{c.min_m}x{c.min_n}x{c.min_k} tile must fit the buffers"
        )
    key, tile = base
    chosen, double = Stationarity.OutputStationary, False
    if tile != (c.M, c.N, c.K):
        kinds = [Stationarity.OutputStationary]
        kinds += [Stationarity.AStationary] if c.allow_a_stationary else []
        kinds += [Stationarity.BStationary] if c.allow_b_stationary else []
        for kind in kinds:
            for double_c in (False, True) if c.allow_double_buffer_c else (False,):
                if kind is Stationarity.OutputStationary and not double_c:
                    continue
                candidate = _best(c, kind, double_c=double_c)
                if candidate is not None and candidate[0][0] < key[0]:
                    (key, tile), chosen, double = candidate, kind, double_c
    m, n, k = tile
    held_a, held_b = _held_loads(c, m, n)
    holds_a = held_a <= held_b
    traffic = _operand_traffic(c, m, n, k, chosen, holds_a) + c.bytes_c * c.M * c.N * (2 if c.c_read else 1)
    padded = [f"{name}={value}" for name, value, low in (("M", c.M, c.min_m), ("N", c.N, c.min_n), ("K", c.K, c.min_k))
              if value < low]  # fmt: skip
    hint = f"padded {', '.join(padded)} up to the cube minimum" if padded else ""
    return L0TileResult(m, n, k, chosen, holds_a, double, traffic, key[0], key[1], hint)


def _operand_traffic(c: L0TileConfig, m: int, n: int, k: int, kind: Stationarity, holds_a: bool) -> int:
    """Bytes of A and B that are loaded; a held operand is loaded once."""
    once_a = kind is Stationarity.AStationary or (kind is Stationarity.OutputStationary and k >= c.K and holds_a)
    once_b = kind is Stationarity.BStationary or (kind is Stationarity.OutputStationary and k >= c.K and not holds_a)
    loads_a = 1 if once_a else _cdiv(c.N, n)
    loads_b = 1 if once_b else _cdiv(c.M, m)
    return c.bytes_a * c.M * c.K * loads_a + c.bytes_b * c.K * c.N * loads_b


def _check(c: L0TileConfig) -> None:
    if min(c.M, c.N, c.K) <= 0:
        raise user_error(f"M, N, K must all be positive, got M={c.M}, N={c.N}, K={c.K}")
    if not c.allow_padding:
        for name, value, low in (("M", c.M, c.min_m), ("N", c.N, c.min_n), ("K", c.K, c.min_k)):
            if value < low:
                raise user_error(f"allow_padding=false but {name}={value} is below the minimum {low}")
    for name in ("max_n", "max_n_pipelined", "max_n_nested_pipelined"):
        cap = getattr(c, name)
        if cap != 0 and cap < c.min_n:
            raise user_error(f"{name} must be zero (no cap) or at least min_n={c.min_n}, got {cap}")


def _held_loads(c: L0TileConfig, m: int, n: int) -> tuple[float, float]:
    """Load time with A held in L0 and with B held."""
    cm, cn = _cdiv(c.M, m), _cdiv(c.N, n)
    held_a = c.bytes_a * c.M * c.K / c.bw_a + c.bytes_b * c.K * c.N * cm / c.bw_b
    held_b = c.bytes_a * c.M * c.K * cn / c.bw_a + c.bytes_b * c.K * c.N / c.bw_b
    return held_a, held_b


def _n_cap(c: L0TileConfig, kind: Stationarity, row_outer: bool, full_k: bool) -> int:
    """Cap on n by the live slots of an auxiliary row of n values: 1, 2 or 4."""
    if kind is Stationarity.BStationary or not full_k:
        return c.max_n
    if kind is Stationarity.AStationary or not row_outer:
        return c.max_n_pipelined or c.max_n
    return c.max_n_nested_pipelined or c.max_n_pipelined or c.max_n


def _best(c: L0TileConfig, kind: Stationarity, *, double_c: bool) -> tuple[tuple, tuple[int, int, int]] | None:
    """(key, tile) of the best legal tile of one schedule."""
    output = kind is Stationarity.OutputStationary
    depth_a = 1 if kind is Stationarity.AStationary else 2
    depth_b = 1 if kind is Stationarity.BStationary else 2
    a0, b0 = c.l0a_bytes // (c.bytes_a * depth_a), c.l0b_bytes // (c.bytes_b * depth_b)
    c0 = c.l0c_bytes // (c.bytes_c * (2 if double_c else 1))
    full_k_only = not output or double_c
    top_m, top_n = max(c.M, c.min_m), max(c.N, c.min_n)
    capped = bool(c.max_n or c.max_n_pipelined or c.max_n_nested_pipelined)
    best: tuple[tuple, tuple[int, int, int]] | None = None
    for m in range(c.min_m, top_m + 1, c.align_m):
        boxed_m = _align(m, c.box_align_m)
        physical_m = _align(boxed_m, c.l0c_align_m)
        for n in range(c.min_n, min(top_n, c0 // physical_m) + 1, c.align_n):
            boxed_n = _align(n, c.box_align_n)
            if physical_m * boxed_n > c0:
                continue
            held_a, held_b = _held_loads(c, m, n)
            row_outer = kind is Stationarity.AStationary or (output and held_a <= held_b)
            if double_c and (c.N // n if row_outer else c.M // m) < 2:
                continue
            ks = _legal_ks(c, min(a0 // boxed_m, b0 // boxed_n))
            if full_k_only:
                ks = [c.K] if c.K in ks else []
            whole = m >= c.M and n >= c.N
            if capped and not whole:
                ks = [k for k in ks if not (cap := _n_cap(c, kind, row_outer, k >= c.K)) or n <= cap]
            elif capped:
                ks = [k for k in ks if not c.max_n or n <= c.max_n]
            for k in ks:
                key = _key(c, kind, double_c, m, n, k, held_a, held_b)
                if best is None or key < best[0]:
                    best = key, (m, n, k)
    return best


def _legal_ks(c: L0TileConfig, cap: int) -> range | list[int]:
    problem = max(_align(c.K, c.align_k), c.min_k) if c.allow_padding else c.K
    high = min(cap, problem) // c.align_k * c.align_k
    ks = range(c.min_k, high + 1, c.align_k)
    if c.allow_padding or (c.allow_k_boundary and c.K % c.align_k == 0):
        return ks
    return [k for k in ks if c.K % k == 0]


def _key(
    c: L0TileConfig, kind: Stationarity, double_c: bool, m: int, n: int, k: int, held_a: float, held_b: float
) -> tuple:  # fmt: skip
    """(wall, padded volume, K blocks, load, -area, -k): smaller is better."""
    cm, cn = _cdiv(c.M, m), _cdiv(c.N, n)
    if kind is Stationarity.AStationary:
        load = held_a
    elif kind is Stationarity.BStationary:
        load = held_b
    elif k >= c.K:
        load = min(held_a, held_b)
    else:
        load = c.bytes_a * c.M * c.K * cn / c.bw_a + c.bytes_b * c.K * c.N * cm / c.bw_b
    fractal = max(1, c.mad_k_fractal_bytes // c.bytes_a)
    passes = max(1, c.mad_fp32_passes) if c.bytes_a == 4 else max(1, c.bytes_a // 2)
    full = c.K // k
    tail = c.K - full * k
    blocks = full + (tail > 0)
    fractals = full * _cdiv(k, fractal) + (_cdiv(tail, fractal) if tail else 0)
    mad = cm * cn * (blocks * c.mad_head + passes * _cdiv(m, c.align_m) * fractals * _cdiv(n, c.align_n))
    odd = _cdiv(n, max(1, c.drain_c0_bytes // c.bytes_c))
    while odd % 2 == 0:
        odd //= 2
    row = max(c.drain_row_cycles, c.bytes_c * n / c.bw_drain) + c.drain_penalty_cycles * (odd - 1)
    drain = cm * cn * (c.drain_fixed_cycles + m * row)
    compute = max(load, float(mad))
    wall = max(compute, drain) + min(compute, drain) / (cm * cn) if double_c else compute + drain
    blocks_k = _cdiv(c.K, k)
    return int(wall + 0.5), cm * m * cn * n * blocks_k * k, blocks_k, load, -(m * n), -k
