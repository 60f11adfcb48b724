"""Ascend 950 (architecture word a5): two dies of 18 clusters, each one cube and two vector cores."""

from __future__ import annotations

from pypto.backend.base import Backend, BackendType, register_backend
from pypto.backend.handler import BackendHandler
from pypto.backend.soc import Cluster, Core, Die, Mem, SoC
from pypto.ir import CoreType, DataType, MemorySpace

_S, _D = MemorySpace, DataType
_KB = 1024


class Handler950(BackendHandler):
    """Answers for 950."""

    name = "950"
    arch = "a5"
    ptoas_arch = "a5"
    native_casts = {
        _D.FP32: (_D.BF16, _D.FP16, _D.FP8E4M3FN, _D.FP8E5M2, _D.HF8, _D.INT16, _D.INT32, _D.INT64),
        _D.FP16: (_D.FP32, _D.HF8, _D.INT8, _D.INT16, _D.INT32, _D.UINT8),
        _D.BF16: (_D.FP16, _D.FP32, _D.FP4, _D.INT32),
        _D.FP4: (_D.BF16,),
        _D.FP8E4M3FN: (_D.FP32,),
        _D.FP8E5M2: (_D.FP32,),
        _D.HF8: (_D.FP32,),
        _D.INT8: (_D.FP16, _D.INT16, _D.INT32),
        _D.UINT8: (_D.FP16, _D.UINT16),
        _D.INT16: (_D.FP16, _D.FP32, _D.INT32, _D.UINT32, _D.UINT8),
        _D.INT32: (_D.FP32, _D.INT16, _D.INT64, _D.UINT16, _D.UINT8),
        _D.UINT32: (_D.INT16, _D.UINT16, _D.UINT8),
        _D.INT64: (_D.FP32, _D.INT32),
    }

    def get_launch_spec_core_count_method(self) -> str:
        return "set_core_num"

    def requires_gm_pipe_buffer(self) -> bool:
        return False

    def requires_split_load_tpop_workaround(self) -> bool:
        return False

    def requires_vto_c_fractal_adapt(self) -> bool:
        return True

    def requires_runtime_subblock_bridge(self) -> bool:
        return False

    def requires_no_split_dual_aiv_dispatch(self) -> bool:
        return False

    def supports_mat_to_bias_move(self, src: DataType, dst: DataType) -> bool:
        return super().supports_mat_to_bias_move(src, dst) or (src, dst) == (_D.BF16, _D.FP32)

    def supports_acc_to_mat_window(self, src: DataType, dst: DataType) -> bool:
        return super().supports_acc_to_mat_window(src, dst) or src == dst == _D.FP32

    def get_gm_access_granularity_bytes(self) -> int:
        return 128

    def get_recommended_innermost_dim_bytes(self) -> int:
        return 128


@register_backend
class Backend950(Backend):
    """Hardware description of 950."""

    backend_type = BackendType.Ascend950
    type_name = "950"
    handler_class = Handler950
    moves = {
        _S.DDR: (_S.Vec, _S.Mat),
        _S.Vec: (_S.DDR, _S.Mat),
        _S.Mat: (_S.Left, _S.Right, _S.Bias, _S.LeftScale, _S.RightScale),
        _S.Acc: (_S.Mat, _S.DDR, _S.Vec),
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
                            Mem(_S.Acc, 256 * _KB, 512),
                            Mem(_S.Bias, 4 * _KB, 64),
                            Mem(_S.LeftScale, 4 * _KB, 32),
                            Mem(_S.RightScale, 4 * _KB, 32),
                        ),
                    ): 1,
                    Core(CoreType.VECTOR, (Mem(_S.Vec, 240 * _KB, 32),)): 2,
                }
            ),
            18,
        ),
        2,
    )
