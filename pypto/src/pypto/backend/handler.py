"""What passes and generators may ask about the architecture they compile for."""

from __future__ import annotations

from typing import Any

from pypto.ir import DataType, MemorySpace, TileLayout, TileView

_D = DataType


class BackendHandler:
    """Answers of one architecture; every difference between architectures is a method or attribute here."""

    #: ``"910B"`` or ``"950"``.
    name: str
    #: Architecture word in ``.pto`` text and platform names.
    arch: str
    #: Assembler architecture word.
    ptoas_arch: str
    #: Element type -> element types it converts to in one instruction.
    native_casts: dict[DataType, tuple[DataType, ...]]

    def __init__(self, backend: Any):
        self.backend = backend

    def get_pto_target_arch(self) -> str:
        return self.arch

    def get_launch_spec_core_count_method(self) -> str:
        raise NotImplementedError

    def get_default_sim_platform(self) -> str:
        return f"{self.arch}sim"

    def get_extra_ptoas_flags(self) -> list[str]:
        return ["--pto-arch", self.ptoas_arch]

    def requires_gm_pipe_buffer(self) -> bool:
        """Pipe slots between cube and vector cores travel through a GM workspace parameter."""
        raise NotImplementedError

    def requires_split_load_tpop_workaround(self) -> bool:
        """A pop must not reuse the buffer of a load."""
        raise NotImplementedError

    def requires_vto_c_fractal_adapt(self) -> bool:
        """A vector-to-cube push needs its tile moved to the fractal layout first."""
        raise NotImplementedError

    def requires_runtime_subblock_bridge(self) -> bool:
        """The kernel wrapper carries the lane number into ``get_subblockid()``."""
        raise NotImplementedError

    def requires_no_split_dual_aiv_dispatch(self) -> bool:
        """Both vector lanes are launched for a mixed kernel without a split."""
        raise NotImplementedError

    def get_l0c_m_alignment(self, dtype: DataType) -> int:
        return 16

    def get_l0_fractal_alignment(self) -> int:
        return 16

    def get_min_l0_tile_dim(self) -> int:
        return 16

    def get_l0a_capacity_bytes(self) -> int:
        return self.mem_size(MemorySpace.Left)

    def get_l0b_capacity_bytes(self) -> int:
        return self.mem_size(MemorySpace.Right)

    def get_l0c_capacity_bytes(self) -> int:
        return self.mem_size(MemorySpace.Acc)

    def get_bias_capacity_bytes(self) -> int:
        return self.mem_size(MemorySpace.Bias)

    def get_mat_capacity_bytes(self) -> int:
        return self.mem_size(MemorySpace.Mat)

    def mem_size(self, space: MemorySpace) -> int:
        """Usable bytes of a space on one core."""
        return self.backend.get_mem_size(space)

    def mem_alignment(self, space: MemorySpace) -> int:
        """Address alignment of a space in bytes."""
        return self.backend.get_mem_alignment(space)

    def supports_mat_to_bias_move(self, src: DataType, dst: DataType) -> bool:
        return (src, dst) in ((_D.INT32, _D.INT32), (_D.FP32, _D.FP32), (_D.FP16, _D.FP32))

    def supports_acc_to_mat_window(self, src: DataType, dst: DataType) -> bool:
        """An accumulator of ``src`` can be written into a part of a Mat tile of ``dst``."""
        return src == _D.FP32 and dst in (_D.BF16, _D.FP16)

    def get_gm_access_granularity_bytes(self) -> int:
        raise NotImplementedError

    def get_l2_cache_line_bytes(self) -> int:
        return 512

    def get_recommended_innermost_dim_bytes(self) -> int:
        raise NotImplementedError

    def get_cross_core_transfer_view(self, space: MemorySpace, view: TileView) -> TileView:
        """View of a tile while it travels between cores: the fractal layout for Mat, Left, Right, else unchanged."""
        if space not in (MemorySpace.Mat, MemorySpace.Left, MemorySpace.Right):
            return view
        return TileView(
            valid_shape=view.valid_shape,
            blayout=TileLayout.col_major,
            slayout=TileLayout.row_major,
            fractal=512,
            pad=view.pad,
        )
