"""The rewrite rules of the simplifier, one table per operator. All hold for every integer, with floor division.

Constants are already folded and stand on the right when a rule is tried. Where several rules match, the first wins.
"""

from __future__ import annotations

from pypto.arith.patterns import Rule, rules


def _both(text: str) -> str:
    """The rules for minimum, and their mirror images for maximum."""
    mirrored = text.replace("min", "MAX").replace("max", "min").replace("MAX", "max")
    return f"{text}\n{mirrored}"


def _orders(text: str) -> str:
    """The rules for ``<``, and the same for ``<=``."""
    return "\n".join(text.replace("OP", operator) for operator in ("<", "<="))


_ADD = """
x + c1 => x - (-c1) if c1 < 0
c1 + x => x + c1
(x + c1) + c2 => x + (c1 + c2)
(x - c1) + c2 => x + (c2 - c1)
(c1 - x) + c2 => (c1 + c2) - x
x + x => x * 2
(x - y) + y => x
(x - y) + (y - z) => x - z
(x - y) + (z - x) => z - y
x + (y - x) => y
x + (c1 - y) => (x - y) + c1
min(x, y - z) + z => min(x + z, y)
min(x - z, y) + z => min(x, y + z)
max(x, y - z) + z => max(x + z, y)
max(x - z, y) + z => max(x, y + z)
max(x, y) + min(x, y) => x + y
max(x, y) + min(y, x) => x + y
min(x, y) + max(x, y) => x + y
min(x, y) + max(y, x) => x + y
x // c1 * c1 + x % c1 => x
x % c1 + x // c1 * c1 => x
x * c1 + y * c1 => (x + y) * c1
x * c1 + x * c2 => x * (c1 + c2)
x * c1 + x => x * (c1 + 1)
x + x * c1 => x * (c1 + 1)
x + -y => x - y
-x + y => y - x
"""

_SUB = """
x - x => 0
x - c1 => x + (-c1) if c1 < 0
(x + y) - y => x
(x + y) - x => y
x - (x + y) => -y
x - (y + x) => -y
x - (x - y) => y
(x + c1) - c2 => x + (c1 - c2)
(x - c1) - c2 => x - (c1 + c2)
(c1 - x) - (c2 - y) => (y - x) + (c1 - c2)
(c1 - x) - c2 => (c1 - c2) - x
c1 - (x + c2) => (c1 - c2) - x
c1 - (x - c2) => (c1 + c2) - x
c1 - (c2 - x) => x + (c1 - c2)
(x + y) - (x + z) => y - z
(x + y) - (z + x) => y - z
(y + x) - (x + z) => y - z
(y + x) - (z + x) => y - z
(x - y) - (x - z) => z - y
(x - z) - (y - z) => x - y
(x + c1) - (y + c2) => (x - y) + (c1 - c2)
(x + c1) - y => (x - y) + c1
x - (y + c1) => (x - y) - c1
x - (y - z) => (x + z) - y
x - x // c1 * c1 => x % c1
x - (x + y) // c1 * c1 => (x + y) % c1 - y
x - (y + x) // c1 * c1 => (y + x) % c1 - y
x // c1 * c1 - x => -(x % c1)
x * c1 - y * c1 => (x - y) * c1
x * c1 - x * c2 => x * (c1 - c2)
x * c1 - x => x * (c1 - 1)
x - x * c1 => x * (1 - c1)
x - -y => x + y
0 - x => -x
min(x, y) - min(y, x) => 0
max(x, y) - max(y, x) => 0
min(x + y, z) - x => min(y, z - x)
min(y + x, z) - x => min(y, z - x)
min(z, x + y) - x => min(z - x, y)
min(z, y + x) - x => min(z - x, y)
max(x + y, z) - x => max(y, z - x)
max(y + x, z) - x => max(y, z - x)
max(z, x + y) - x => max(z - x, y)
max(z, y + x) - x => max(z - x, y)
"""

_MUL = """
c1 * x => x * c1
(x * c1) * c2 => x * (c1 * c2)
(x + c1) * c2 => x * c2 + c1 * c2
(x - c1) * c2 => x * c2 - c1 * c2
(c1 - x) * c2 => c1 * c2 - x * c2
(x - y) * c1 => (y - x) * (-c1) if c1 < 0
x * -1 => -x
-x * c1 => x * (-c1)
min(x, y) * max(x, y) => x * y
min(x, y) * max(y, x) => x * y
max(x, y) * min(x, y) => x * y
max(x, y) * min(y, x) => x * y
"""

_FLOORDIV = """
(x * c1) // c2 => x * (c1 // c2) if c2 > 0 and c1 % c2 == 0
(x * c1) // c2 => x // (c2 // c1) if c1 > 0 and c2 % c1 == 0 and c2 > 0
(x // c1) // c2 => x // (c1 * c2) if c1 > 0 and c2 > 0
(x // c1 + c2) // c3 => (x + c1 * c2) // (c1 * c3) if c1 > 0 and c3 > 0
(x * c1 + y) // c2 => x * (c1 // c2) + y // c2 if c2 > 0 and c1 % c2 == 0
(y + x * c1) // c2 => x * (c1 // c2) + y // c2 if c2 > 0 and c1 % c2 == 0
(x * c1 - y) // c2 => x * (c1 // c2) + (-y) // c2 if c2 > 0 and c1 % c2 == 0
(y - x * c1) // c2 => y // c2 - x * (c1 // c2) if c2 > 0 and c1 % c2 == 0
(x + c1) // c2 => x // c2 + c1 // c2 if c2 > 0 and c1 % c2 == 0
(x - c1) // c2 => x // c2 - c1 // c2 if c2 > 0 and c1 % c2 == 0
(x - x % c1) // c1 => x // c1 if c1 > 0
x // x => 1 if nonzero(x)
(x * c1) // x => c1 if nonzero(x)
(x * y) // y => x if nonzero(y)
(y * x) // y => x if nonzero(y)
x // -1 => -x
"""

_FLOORMOD = """
(x * c1) % c2 => 0 if c1 % c2 == 0
(x * c1) % c2 => (x * (c1 % c2)) % c2 if c2 > 0 and not 0 <= c1 < c2
(x * c1 + y) % c2 => y % c2 if c1 % c2 == 0
(y + x * c1) % c2 => y % c2 if c1 % c2 == 0
(x * c1 - y) % c2 => (-y) % c2 if c1 % c2 == 0
(y - x * c1) % c2 => y % c2 if c1 % c2 == 0
(x + c1) % c2 => (x + c1 % c2) % c2 if c2 > 0 and not 0 <= c1 < c2
(x - c1) % c2 => (x + (-c1) % c2) % c2 if c2 > 0
(x % c1) % c2 => x % c2 if c1 % c2 == 0 and c2 > 0
x % x => 0 if nonzero(x)
(x * y) % y => 0 if nonzero(y)
(y * x) % y => 0 if nonzero(y)
"""

_SYMMETRIC = """
min(c1, x) => min(x, c1)
min(x, x) => x
min(min(x, c1), c2) => min(x, min(c1, c2))
min(min(x, y), x) => min(x, y)
min(min(x, y), y) => min(x, y)
min(x, min(x, y)) => min(x, y)
min(x, min(y, x)) => min(y, x)
min(max(x, y), x) => x
min(max(x, y), y) => y
min(x, max(x, y)) => x
min(x, max(y, x)) => x
min(x + c1, x + c2) => x + min(c1, c2)
min(x - c1, x - c2) => x - max(c1, c2)
min(c1 - x, c2 - x) => min(c1, c2) - x
min(y - x, z - x) => min(y, z) - x
min(x - y, x - z) => x - max(y, z)
min(x + y, x + z) => x + min(y, z)
min(x + y, z + x) => x + min(y, z)
min(y + x, x + z) => min(y, z) + x
min(y + x, z + x) => min(y, z) + x
min(max(x, y), max(x, z)) => max(min(y, z), x)
min(max(x, y), max(z, x)) => max(min(y, z), x)
min(max(y, x), max(x, z)) => max(min(y, z), x)
min(max(y, x), max(z, x)) => max(min(y, z), x)
min(min(x, y), min(x, z)) => min(min(y, z), x)
min(x * c1, y * c1) => min(x, y) * c1 if c1 > 0
min(x * c1, y * c1) => max(x, y) * c1 if c1 < 0
min(x // c1, y // c1) => min(x, y) // c1 if c1 > 0
"""

# The sign of a constant is already moved into the operator, so these need only the case of positive ones.
_OFFSETS = """
min(x + c1, x - c2) => x - c2 if c1 >= 0 and c2 >= 0
min(x - c2, x + c1) => x - c2 if c1 >= 0 and c2 >= 0
min(x, x + c1) => x if c1 >= 0
min(x + c1, x) => x if c1 >= 0
min(x, x - c1) => x - c1 if c1 >= 0
min(x - c1, x) => x - c1 if c1 >= 0
max(x + c1, x - c2) => x + c1 if c1 >= 0 and c2 >= 0
max(x - c2, x + c1) => x + c1 if c1 >= 0 and c2 >= 0
max(x, x + c1) => x + c1 if c1 >= 0
max(x + c1, x) => x + c1 if c1 >= 0
max(x, x - c1) => x if c1 >= 0
max(x - c1, x) => x if c1 >= 0
"""

_ORDER = (
    _orders("""
x + y OP x + z => y OP z
x + y OP z + x => y OP z
y + x OP x + z => y OP z
y + x OP z + x => y OP z
x - y OP x - z => z OP y
x - z OP y - z => x OP y
x OP x + z => 0 OP z
x OP z + x => 0 OP z
x + z OP x => z OP 0
z + x OP x => z OP 0
x OP x - z => z OP 0
x - z OP x => 0 OP z
x + c1 OP c2 => x OP c2 - c1
x - c1 OP c2 => x OP c2 + c1
c1 - x OP c2 => c1 - c2 OP x
c1 OP x + c2 => c1 - c2 OP x
c1 OP x - c2 => c1 + c2 OP x
c1 OP c2 - x => x OP c2 - c1
x + c1 OP y + c2 => x OP y + (c2 - c1)
x - c1 OP y - c2 => x OP y + (c1 - c2)
x + c1 OP y - c2 => x OP y - (c1 + c2)
x - c1 OP y + c2 => x OP y + (c1 + c2)
x * c1 OP y * c1 => x OP y if c1 > 0
x * c1 OP y * c1 => y OP x if c1 < 0
x * c1 OP 0 => x OP 0 if c1 > 0
0 OP x * c1 => 0 OP x if c1 > 0
""")
    + """
x < x => False
x <= x => True
x // c1 < c2 => x < c1 * c2 if c1 > 0
x // c1 <= c2 => x < c1 * (c2 + 1) if c1 > 0
c1 < x // c2 => (c1 + 1) * c2 <= x if c2 > 0
c1 <= x // c2 => c1 * c2 <= x if c2 > 0
x * c1 < c2 => x < (c2 - 1) // c1 + 1 if c1 > 0
x * c1 <= c2 => x <= c2 // c1 if c1 > 0
c1 < x * c2 => c1 // c2 < x if c2 > 0
c1 <= x * c2 => (c1 - 1) // c2 < x if c2 > 0
min(x, y) < z => x < z or y < z
max(x, y) < z => x < z and y < z
z < min(x, y) => z < x and z < y
z < max(x, y) => z < x or z < y
min(x, y) <= z => x <= z or y <= z
max(x, y) <= z => x <= z and y <= z
z <= min(x, y) => z <= x and z <= y
z <= max(x, y) => z <= x or z <= y
"""
)

_EQUALITY = (
    "\n".join(
        text.replace("OP", operator)
        for operator in ("==", "!=")
        for text in [
            """
c1 OP x => x OP c1
x + c1 OP c2 => x OP c2 - c1
x - c1 OP c2 => x OP c2 + c1
c1 - x OP c2 => x OP c1 - c2
x + c1 OP y + c2 => x OP y + (c2 - c1)
x + y OP x + z => y OP z
x + y OP z + x => y OP z
y + x OP x + z => y OP z
y + x OP z + x => y OP z
x - y OP x - z => y OP z
x - z OP y - z => x OP y
x * c1 OP c2 => x OP c2 // c1 if c1 != 0 and c2 % c1 == 0
x * c1 OP y * c1 => x OP y if c1 != 0
"""
        ]
    )
    + """
x == x => True
x != x => False
x * c1 == c2 => False if c1 != 0 and c2 % c1 != 0
x * c1 != c2 => True if c1 != 0 and c2 % c1 != 0
x == x + c1 => False if c1 != 0
x != x + c1 => True if c1 != 0
x + c1 == x => False if c1 != 0
x + c1 != x => True if c1 != 0
"""
)

_LOGIC = """
x and False => False
False and x => False
x and True => x
True and x => x
x and x => x
x and not x => False
not x and x => False
x == y and x != y => False
x != y and x == y => False
x <= y and y < x => False
y < x and x <= y => False
x < y and y < x => False
x < c1 and c2 < x => False if c1 - c2 <= 1
c2 < x and x < c1 => False if c1 - c2 <= 1
x < c1 and c2 <= x => False if c1 <= c2
c2 <= x and x < c1 => False if c1 <= c2
x <= c1 and c2 < x => False if c1 <= c2
c2 < x and x <= c1 => False if c1 <= c2
x <= c1 and c2 <= x => False if c1 < c2
c2 <= x and x <= c1 => False if c1 < c2
x == c1 and x == c2 => False if c1 != c2
x or True => True
True or x => True
x or False => x
False or x => x
x or x => x
x or not x => True
not x or x => True
x == y or x != y => True
x != y or x == y => True
x <= y or y < x => True
y < x or x <= y => True
x < y or x == y => x <= y
x == y or x < y => x <= y
x < y or y < x => x != y
x < c1 or c2 < x => True if c2 < c1
c2 < x or x < c1 => True if c2 < c1
x < c1 or c2 <= x => True if c2 <= c1
x <= c1 or c2 <= x => True if c2 <= c1 + 1
not not x => x
not x < y => y <= x
not x <= y => y < x
not x > y => x <= y
not x >= y => x < y
not x == y => x != y
not x != y => x == y
not (x and y) => not x or not y
not (x or y) => not x and not y
"""

_NEG = """
- -x => x
-(x - y) => y - x
-(x * c1) => x * (-c1)
"""

#: Comparisons that only exist until they are turned round.
MIRRORED = rules("""
x > y => y < x
x >= y => y <= x
""")

ARITHMETIC: dict[type, list[Rule]] = rules(_ADD, _SUB, _MUL, _FLOORDIV, _FLOORMOD, _both(_SYMMETRIC), _OFFSETS, _NEG)
COMPARISON: dict[type, list[Rule]] = rules(_ORDER, _EQUALITY)
LOGIC: dict[type, list[Rule]] = rules(_LOGIC)
