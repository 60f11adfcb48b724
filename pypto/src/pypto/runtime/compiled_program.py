"""``CompiledProgram``: an artifact folder as a callable."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypto.artifact.layout import HOST_ORCHESTRATION, MANIFEST
from pypto.artifact.sidecar import ArtifactMeta, ParamInfo, read_sidecar
from pypto.backend import BackendType
from pypto.ir import ParamDirection
from pypto.runtime.arguments import check_argument, check_symbols, split_arguments
from pypto.runtime.device_tensor import DeviceTensor
from pypto.runtime.run_config import check_config

if TYPE_CHECKING:
    from pypto.ir import Program


class CompiledProgram:
    """A compiled program; call it with tensors and scalars.

    With all arguments the outputs are written in place and None is returned; without the ``Out`` arguments of a
    program that returns, they are allocated and returned. ``str()`` and ``os.fspath()`` give the artifact folder.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike,
        meta: ArtifactMeta | None,
        *,
        program: Program | None = None,
        platform: str | None = None,
        backend_type: BackendType | None = None,
        children: dict[str, CompiledProgram] | None = None,
    ):
        self.output_dir = Path(output_dir)
        self.program = program
        self._meta = meta
        self._children = dict(children or {})
        self.platform = platform or (meta.platform if meta else "a2a3sim")
        self.backend_type = backend_type or (meta.backend_type if meta else BackendType.Ascend910B)
        self._assembled: dict[str, tuple[Any, Any]] = {}

    @classmethod
    def from_dir(
        cls, output_dir: str | os.PathLike, *, platform: str | None = None, backend_type: BackendType | None = None
    ) -> CompiledProgram:
        """The artifact of an earlier compile; the arguments override what the sidecar says.

        Raises:
            FileNotFoundError: the folder holds no artifact.
            ValueError: its sidecar is damaged.
        """
        root = Path(output_dir)
        if (root / HOST_ORCHESTRATION).exists() and not (root / MANIFEST).exists():
            raise ValueError(f"{root} holds a distributed artifact; open it with DistributedCompiledProgram.from_dir")
        return cls(root, read_sidecar(root), platform=platform, backend_type=backend_type)

    # -- description --------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return str(self.output_dir)

    def __fspath__(self) -> str:
        return str(self.output_dir)

    def __repr__(self) -> str:
        return f"CompiledProgram({str(self.output_dir)!r}, platform={self.platform!r})"

    def _single(self) -> ArtifactMeta:
        if self._meta is None:
            names = ", ".join(self.orchestration_names)
            raise TypeError(f"this artifact has several orchestrations ({names}); select one, such as compiled[name]")
        return self._meta

    @property
    def params(self) -> tuple[ParamInfo, ...]:
        return self._single().params

    @property
    def param_names(self) -> list[str]:
        return [p.name for p in self.params]

    @property
    def output_indices(self) -> list[int]:
        return [i for i, p in enumerate(self.params) if p.direction is ParamDirection.Out]

    @property
    def has_return(self) -> bool:
        return self._single().num_return_types > 0

    @property
    def orchestration_names(self) -> list[str]:
        return sorted(self._children)

    def __getitem__(self, name: str) -> CompiledProgram:
        if name not in self._children:
            raise KeyError(f"no orchestration '{name}'; this artifact has {self.orchestration_names}")
        return self._children[name]

    def __getattr__(self, name: str) -> CompiledProgram:
        children = self.__dict__.get("_children", {})
        if name in children:
            return children[name]
        raise AttributeError(f"'CompiledProgram' object has no attribute '{name}'")

    # -- binaries -----------------------------------------------------------------------------------------------

    def assembled(self, platform: str, *, on_disk: bool = False) -> tuple[Any, Any]:
        """(callable of the task runtime, manifest) for a platform, built on first use.

        ``on_disk`` builds it again when its files have been removed from the compile cache.
        """
        self._single()
        known = self._assembled.get(platform)
        if known is None or (on_disk and not known[0].on_disk):
            from pypto.runtime.binaries import build_chip_callable

            self._assembled[platform] = build_chip_callable(self.output_dir, platform)
        return self._assembled[platform]

    def load(self) -> None:
        """Build the binaries now."""
        self.assembled(run_platform(self.platform))

    @property
    def chip_callable(self) -> Any:
        return self.assembled(run_platform(self.platform))[0]

    @property
    def runtime_config(self) -> dict[str, Any]:
        from pypto.artifact.manifest import read_manifest

        self._single()
        return read_manifest(self.output_dir).runtime

    @property
    def runtime_name(self) -> str:
        return self.runtime_config["runtime"]

    # -- execution ----------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, config: Any = None) -> Any:
        """Run once; see the class for the two argument styles.

        Raises:
            TypeError: wrong number or kind of arguments.
            ValueError: a tensor of another shape, not contiguous, or not in CPU memory.
            RuntimeError: the run failed; the text names the kernel and the task.
        """
        meta = self._single()
        check_config(config)
        if (config.platform if config is not None else self.platform) == "torch":
            return self._run_as_torch(meta, args)
        from pypto.runtime.worker import one_shot_worker

        values, allocated = split_arguments(meta.params, args, self.has_return)
        platform = run_platform(config.platform if config is not None else self.platform)
        if platform not in self._assembled:
            # The worker checks every run; before the first one nobody should wait for a compiler to hear of a mistake.
            for position, (param, value) in enumerate(zip(meta.params, values)):
                if not isinstance(value, DeviceTensor):
                    check_argument(param, position, value)
            check_symbols(meta.params, values)
        with one_shot_worker(platform, self, config) as worker:
            worker.execute(self, values, config)
        return self._results(values) if allocated else None

    def _results(self, values: list[Any]) -> Any:
        outputs = [values[i] for i in self.output_indices]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _run_as_torch(self, meta: ArtifactMeta, args: tuple) -> Any:
        from pypto.debug import run_as_torch

        if self.program is None:
            raise RuntimeError("platform 'torch' needs the program's IR; an artifact loaded from a folder has none")
        values, allocated = split_arguments(meta.params, args, self.has_return)
        for position, (param, value) in enumerate(zip(meta.params, values)):
            check_argument(param, position, value)
        check_symbols(meta.params, values)
        run_as_torch(self.program, values)
        return self._results(values) if allocated else None

    def validate_ir(self, tensors: Any, expected: Any, *, rtol: float = 5e-2, atol: float = 5e-2) -> None:
        """Run the dumped IR of every pass through generated torch code and compare.

        Raises:
            FileNotFoundError: the program was compiled without pass dumps.
            AssertionError: a stage computes something else.
        """
        from pypto.debug import validate_pass_ir_codegen_results

        validate_pass_ir_codegen_results(str(self.output_dir / "passes_dump"), tensors, expected, rtol=rtol, atol=atol)


def run_platform(platform: str) -> str:
    """The platform to run on: hardware names become their simulator when ``PYPTO_SIM_FALLBACK=1``."""
    if not platform.endswith("sim") and os.environ.get("PYPTO_SIM_FALLBACK") == "1":
        return f"{platform}sim"
    return platform
