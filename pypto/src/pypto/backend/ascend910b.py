"""Ascend 910B (architecture word a2a3): one die of 24 clusters, each one cube and two vector cores."""

from __future__ import annotations

from pypto.backend.base import Backend, BackendType, register_backend
from pypto.backend.handler import BackendHandler
from pypto.backend.soc import Cluster, Core, Die, Mem, SoC
from pypto.ir import CoreType, DataType, MemorySpace

_S, _D = MemorySpace, DataType
_KB = 1024


class Handler910B(BackendHandler):
    """Answers for 910B."""

    name = "910B"
    arch = "a2a3"
    ptoas_arch = "a3"
    native_casts = {
        _D.FP32: (_D.BF16, _D.FP16, _D.INT16, _D.INT32, _D.INT64),
        _D.FP16: (_D.FP32, _D.INT4, _D.INT8, _D.INT16, _D.INT32, _D.UINT8),
        _D.BF16: (_D.FP32, _D.INT32),
        _D.INT8: (_D.FP16,),
        _D.UINT8: (_D.FP16,),
        _D.INT16: (_D.FP16, _D.FP32),
        _D.INT32: (_D.FP16, _D.FP32, _D.INT16, _D.INT64),
        _D.INT64: (_D.FP32, _D.INT32),
        _D.INT4: (_D.FP16,),
    }

    def get_launch_spec_core_count_method(self) -> str:
        return "set_block_num"

    def requires_gm_pipe_buffer(self) -> bool:
        return True

    def requires_split_load_tpop_workaround(self) -> bool:
        return True

    def requires_vto_c_fractal_adapt(self) -> bool:
        return False

    def requires_runtime_subblock_bridge(self) -> bool:
        return True

    def requires_no_split_dual_aiv_dispatch(self) -> bool:
        return True

    def get_l0c_m_alignment(self, dtype: DataType) -> int:
        return 32 if dtype == DataType.INT32 else 16

    def get_gm_access_granularity_bytes(self) -> int:
        return 512

    def get_recommended_innermost_dim_bytes(self) -> int:
        return 512


@register_backend
class Backend910B(Backend):
    """Hardware description of 910B."""

    backend_type = BackendType.Ascend910B
    type_name = "910B"
    handler_class = Handler910B
    moves = {
        _S.DDR: (_S.Vec, _S.Mat),
        _S.Vec: (_S.DDR,),
        _S.Mat: (_S.Left, _S.Right, _S.Bias),
        _S.Acc: (_S.Mat, _S.DDR),
    }
    soc = SoC(
        Die(
            Cluster(
                {
                    Core(
                        CoreType.CUBE,
                        (
                            Mem(_S.Mat, 512 * _KB, 32),
                            Mem(_S.Left, 64 * _KB, 512),
                            Mem(_S.Right, 64 * _KB, 512),
                            Mem(_S.Acc, 128 * _KB, 512),
                            Mem(_S.Bias, 1 * _KB, 64),
                        ),
                    ): 1,
                    Core(CoreType.VECTOR, (Mem(_S.Vec, 184 * _KB, 32),)): 2,
                }
            ),
            24,
        )
    )
