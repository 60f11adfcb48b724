"""IR properties: named facts about a program that passes require, produce and invalidate."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import ClassVar, Generic, TypeVar


class IRProperty(Enum):
    """A fact about a program; every member but the marker ones has a verifier (``passes.verifiers``)."""

    SSAForm = 0
    TypeChecked = 1
    NoNestedCalls = 2
    NormalizedStmtStructure = 3
    NoRedundantBlocks = 4
    SplitIncoreOrch = 5
    ClusterOutlined = 6
    HierarchyOutlined = 7
    HasMemRefs = 8
    IncoreTileOps = 9
    AllocatedMemoryAddr = 10
    MixedKernelExpanded = 11
    BreakContinueValid = 12
    TileOps2D = 13
    TileMemoryInferred = 14
    UseAfterDef = 15
    StructuredCtrlFlow = 16
    VectorKernelSplit = 17
    OutParamNotShadowed = 18
    NoNestedInCore = 19
    InOutUseValid = 20
    InlineFunctionsEliminated = 21
    UnrollResolved = 22
    PipelineLoopValid = 23
    PipelineResolved = 24
    TileTypeCoherence = 25
    AssignTypeSymmetry = 26
    ArrayNotEscaped = 27
    CallDirectionsResolved = 28
    ManualDepsOnSubmitOnly = 29
    ReturnParamsExplicit = 30
    RuntimeScopesMaterialized = 31
    IterArgCarryClassified = 32
    TensorViewCanonical = 33
    CommDomainScopesMaterialized = 34
    DistTensorCtxMaterialized = 35
    OrchestrationReferencesResolved = 36
    HardSyncallOccupancyValid = 37
    AivSplitValid = 38
    AccToGmStoreValid = 39
    AtomicAddDtypeValid = 40
    AivSplitLoweredValid = 41
    AccCompactValid = 42
    AccStorePhaseValid = 43
    GraphOutlined = 44
    GraphBoundaryLegalized = 45
    BufferIR = 46
    TileStorageLegalized = 47
    TileStorageAllocated = 48


Member = TypeVar("Member", bound=Enum)


class EnumSet(Generic[Member]):
    """A mutable, unhashable set of enum members that lists and prints in enum order."""

    member_type: ClassVar[type[Enum]]
    __slots__ = ("_members",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, members: Iterable[Member] = ()):
        self._members: set[Member] = set(members)

    def insert(self, member: Member) -> None:
        if not isinstance(member, self.member_type):
            raise TypeError(f"{type(self).__name__} holds {self.member_type.__name__}, got {type(member).__name__}")
        self._members.add(member)

    def remove(self, member: Member) -> None:
        self._members.discard(member)

    def contains(self, member: Member) -> bool:
        return member in self._members

    __contains__ = contains

    def contains_all(self, other: EnumSet[Member]) -> bool:
        return other._members <= self._members

    def union_with(self, other: EnumSet[Member]) -> EnumSet[Member]:
        return type(self)(self._members | other._members)

    def intersection(self, other: EnumSet[Member]) -> EnumSet[Member]:
        return type(self)(self._members & other._members)

    def difference(self, other: EnumSet[Member]) -> EnumSet[Member]:
        return type(self)(self._members - other._members)

    def empty(self) -> bool:
        return not self._members

    def to_list(self) -> list[Member]:
        return [m for m in self.member_type if m in self._members]  # type: ignore[misc]

    def copy(self) -> EnumSet[Member]:
        return type(self)(self._members)

    def __iter__(self):
        return iter(self.to_list())

    def __len__(self) -> int:
        return len(self._members)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._members == other._members  # type: ignore[attr-defined]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __str__(self) -> str:
        return "{" + ", ".join(m.name for m in self.to_list()) + "}"

    __repr__ = __str__


class IRPropertySet(EnumSet[IRProperty]):
    """A set of :class:`IRProperty`."""

    member_type = IRProperty
    __slots__ = ()


_P = IRProperty

#: Properties that hold between any two passes; no pass may list one in its declarations.
STRUCTURAL = IRPropertySet(
    (
        _P.TypeChecked, _P.BreakContinueValid, _P.NoRedundantBlocks, _P.UseAfterDef, _P.OutParamNotShadowed,
        _P.NoNestedInCore, _P.InOutUseValid, _P.PipelineLoopValid, _P.ArrayNotEscaped, _P.ManualDepsOnSubmitOnly,
        _P.AtomicAddDtypeValid, _P.AccStorePhaseValid,
    )
)  # fmt: skip

#: Properties that ``run_verifier()`` checks when none are named.
DEFAULT_VERIFY = IRPropertySet(
    (
        _P.SSAForm, _P.TypeChecked, _P.NoNestedCalls, _P.BreakContinueValid, _P.NoRedundantBlocks, _P.UseAfterDef,
        _P.OutParamNotShadowed, _P.NoNestedInCore, _P.TileTypeCoherence, _P.ArrayNotEscaped,
    )
)  # fmt: skip

#: Properties that a pipeline verifies by itself, each where it is produced.
VERIFIED = IRPropertySet(
    (
        _P.SSAForm, _P.TypeChecked, _P.MixedKernelExpanded, _P.AllocatedMemoryAddr, _P.BreakContinueValid,
        _P.NoRedundantBlocks, _P.InOutUseValid, _P.CallDirectionsResolved, _P.ManualDepsOnSubmitOnly,
        _P.ReturnParamsExplicit, _P.AivSplitValid, _P.TileMemoryInferred, _P.HardSyncallOccupancyValid,
        _P.IterArgCarryClassified, _P.RuntimeScopesMaterialized, _P.DistTensorCtxMaterialized, _P.AccToGmStoreValid,
        _P.AtomicAddDtypeValid, _P.GraphBoundaryLegalized, _P.AccCompactValid, _P.AivSplitLoweredValid,
        _P.AccStorePhaseValid,
    )
)  # fmt: skip


def get_structural_properties() -> IRPropertySet:
    """A copy of :data:`STRUCTURAL`."""
    return STRUCTURAL.copy()  # type: ignore[return-value]


def get_default_verify_properties() -> IRPropertySet:
    """A copy of :data:`DEFAULT_VERIFY`."""
    return DEFAULT_VERIFY.copy()  # type: ignore[return-value]


def get_verified_properties() -> IRPropertySet:
    """A copy of :data:`VERIFIED`."""
    return VERIFIED.copy()  # type: ignore[return-value]
