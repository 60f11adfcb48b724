"""Simplification and proofs over integer scalar expressions."""

from pypto.arith.analyzer import Analyzer, ConstraintContext
from pypto.arith.bounds import ConstIntBound, ConstIntBoundAnalyzer
from pypto.arith.canonical import CanonicalSimplifier
from pypto.arith.compare import CompareResult, TransitiveComparisonAnalyzer
from pypto.arith.fold import fold_const
from pypto.arith.int_ops import extended_euclidean, floordiv, floormod, gcd, lcm
from pypto.arith.int_set import IntSet, IntSetAnalyzer
from pypto.arith.modular import ModularSet, ModularSetAnalyzer
from pypto.arith.rewrite import RewriteSimplifier

kPosInf = ConstIntBound.kPosInf
kNegInf = ConstIntBound.kNegInf
