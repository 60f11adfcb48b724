"""``@pl.jit`` and its family: functions that compile themselves for the arguments of a call."""

from __future__ import annotations

import ast
import functools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from pypto.artifact import cache
from pypto.ir.dtype import DataType
from pypto.ir.enums import Level
from pypto.ir.program import Program
from pypto.jit import extern as extern_kernels
from pypto.jit import lowering, persistent
from pypto.jit.annotations import Parameter, parameters_of
from pypto.jit.arguments import Bound, BoundArguments, bind_call, bind_signature
from pypto.jit.cache_key import cache_key, external_hash, text_hash
from pypto.jit.dynamic_dims import DynamicDims, body_symbols, dynamic_dims
from pypto.jit.kinds import ENTRIES, Kind
from pypto.jit.specializer import Specialization
from pypto.jit.tensor_meta import TensorMeta
from pypto.language.parser.context import SourceInfo
from pypto.language.parser.decorator import check_decorated, closure_of
from pypto.language.parser.diagnostics import ParserTypeError, located_errors
from pypto.language.parser.expr_evaluator import ExprEvaluator
from pypto.language.parser.source_lookup import ParsedFile, find_definition
from pypto.language.parser.type_resolver import TypeResolver
from pypto.language.typing.dynamic import DynVar


class JITFunction:
    """A function of the JIT family. Entries are called, compiled and lowered; the others are reached from an entry."""

    def __init__(
        self,
        func: Callable,
        kind: Kind,
        frame: FrameType | None = None,
        level: Level | None = None,
        auto_scope: bool = True,
        extern: extern_kernels.ExternSources | None = None,
    ):
        functools.update_wrapper(self, func)
        self._func = func
        self.kind = kind
        self.level = level
        self.auto_scope = auto_scope
        self.extern = extern
        self._around = closure_of(func, frame)
        self._cache: dict[tuple, Any] = {}
        self._restored: dict[str, Any] = {}
        self._lock = threading.Lock()

    # -- public --------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """Compile for these arguments, or reuse, and run in place; the result is None when every argument is given."""
        bound = self._bind(args, kwargs)
        return self._runnable(bound, config)(*bound.call_arguments, **({"config": config} if config else {}))

    def compile(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """The artifact for these arguments; equal keys give the identical object."""
        return self._compiled(self._bind(args, kwargs), config)

    def warmup(self, *args: Any, config: Any = None, **kwargs: Any) -> None:
        """Compile for these arguments, or reuse, and build all binaries; nothing runs.

        A call with equal arguments, in this process or a later one, then starts at once.
        """
        found = self._runnable(self._bind(args, kwargs), config)
        if config is None or config.platform != "torch":
            found.load()

    def lower(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """The program after all passes, without code generation and without cache."""
        specialization = Specialization(self)
        bound = self._bind(args, kwargs)
        with located_errors():
            program = specialization.run(bound.tensors, bound.constants)
            with lowering.user_names(specialization.aliases):
                return lowering.lower(program, config)

    def specialize(self, *args: Any, **kwargs: Any) -> Any:
        """The program before passes."""
        bound = self._bind(args, kwargs)
        with located_errors():
            return self._compile_to_program(bound.tensors, bound.constants)

    def get_deps(self) -> list[JITFunction]:
        """Functions of the family reached from this one, callers before callees, each once."""
        found: dict[int, JITFunction] = {}
        self._collect(found)
        return list(found.values())

    @functools.cached_property
    def dependencies(self) -> tuple[JITFunction, ...]:
        """:meth:`get_deps` of the first use."""
        return tuple(self.get_deps())

    def bind_dynamic(self, *_: Any) -> None:
        """Accepted outside a body as well; has no effect."""

    # -- definition ----------------------------------------------------------------------------------------------

    @functools.cached_property
    def _definition(self) -> tuple[ast.FunctionDef, SourceInfo, ParsedFile]:
        found = find_definition(self._func)
        if found is None:
            raise OSError(f"@pl.jit function '{self.__name__}': cannot retrieve source code")
        return found

    @property
    def node(self) -> ast.FunctionDef:
        return self._definition[0]

    @property
    def source(self) -> SourceInfo:
        return self._definition[1]

    @property
    def parsed(self) -> ParsedFile:
        return self._definition[2]

    @functools.cached_property
    def text(self) -> str:
        """The source text of the function."""
        return ast.unparse(self.node)

    @property
    def source_hash(self) -> str:
        """Hash of the text of this function and of everything it reaches; files of external kernels are read again."""
        externals = [f for f in self.dependencies if f.extern is not None]
        return self._text_hash + (external_hash(externals) if externals else "")

    @functools.cached_property
    def _text_hash(self) -> str:
        return text_hash((self, *self.dependencies))

    @functools.cached_property
    def parameters(self) -> list[Parameter]:
        return parameters_of(self.node, self.evaluator(), self.__name__)

    @functools.cached_property
    def symbols(self) -> dict[str, str]:
        """Local names bound by ``pl.dynamic`` statements of the body, with the names of their symbols."""
        return body_symbols(self.node)

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """Every name that occurs in the function."""
        return frozenset(n.id for n in ast.walk(self.node) if isinstance(n, ast.Name)) | set(self._param_names())

    @functools.cached_property
    def dynamic_dims(self) -> DynamicDims:
        return dynamic_dims(self)

    def closure_vars(self) -> dict[str, Any]:
        """Values visible from the definition, module globals as they are now."""
        values = {**self._around, **self._func.__globals__}
        values.update({k: v for k, v in self._around.items() if k not in self._func.__globals__})
        for name, cell in zip(self._func.__code__.co_freevars, self._func.__closure__ or ()):
            try:
                values[name] = cell.cell_contents
            except ValueError:
                continue
        return values

    def captured_constants(self) -> list[tuple[str, Any]]:
        """Numbers and strings around the definition that the body names, as they are now."""
        return [pair for pair in self.free_values() if isinstance(pair[1], (bool, int, float, str))]

    def free_values(self) -> list[tuple[str, Any]]:
        """Everything around the definition that the body names, as it is now; locals and builtins are not."""
        cells = dict(zip(self._func.__code__.co_freevars, self._func.__closure__ or ()))
        module, found = self._func.__globals__, []
        for name in self._free_names:
            if name in cells:
                try:
                    found.append((name, cells[name].cell_contents))
                except ValueError:
                    continue
            elif name in module:
                found.append((name, module[name]))
            elif name in self._around:
                found.append((name, self._around[name]))
        return found

    @functools.cached_property
    def _free_names(self) -> list[str]:
        return sorted(self.names - set(self._param_names()))

    def evaluator(self) -> ExprEvaluator:
        return ExprEvaluator(self.closure_vars())

    def symbol_object(self, name: str) -> DynVar | None:
        """The symbol of this name around the definition, if there is one."""
        return next((v for v in self.closure_vars().values() if isinstance(v, DynVar) and v.name == name), None)

    def _param_names(self) -> list[str]:
        return [p.name for p in self.parameters]

    # -- calls between members -----------------------------------------------------------------------------------

    @functools.cached_property
    def calls(self) -> list[tuple[JITFunction, dict[str, ast.expr]]]:
        """(callee, parameter -> argument) of every call of another member in the body."""
        evaluator = self.evaluator()
        found = []
        for node in ast.walk(self.node):
            if not isinstance(node, ast.Call):
                continue
            callee, nodes = evaluator.try_eval_expr(node.func)[1], node.args
            if (
                not isinstance(callee, JITFunction)
                and node.args
                and isinstance(node.args[0], (ast.Name, ast.Attribute))
            ):
                first = evaluator.try_eval_expr(node.args[0])[1]
                submits = getattr(node.func, "attr", getattr(node.func, "id", "")) in ("submit", "spmd_submit")
                callee, nodes = (first if submits else None), node.args[1:]
            if not isinstance(callee, JITFunction) or not self._may_call(callee):
                continue
            names = callee._param_names()
            arguments = dict(zip(names, nodes))
            arguments.update({k.arg: k.value for k in node.keywords if k.arg in names})
            found.append((callee, arguments))
        return found

    def _may_call(self, callee: JITFunction) -> bool:
        """Entries are programs of their own; only a host entry dispatches chip entries."""
        return callee.kind not in ENTRIES or (self.kind is Kind.HOST and callee.kind is Kind.ORCHESTRATION)

    def _collect(self, found: dict[int, JITFunction]) -> None:
        for callee, _ in self.calls:
            if id(callee) not in found and callee is not self:
                found[id(callee)] = callee
                callee._collect(found)

    def arrange(self, node: ast.Call, parser: Any) -> tuple[list[ast.expr], list[ast.keyword]]:
        """(argument nodes in parameter order, remaining keywords) of a call of this function."""
        names = self._param_names()
        given: dict[str, ast.expr] = dict(zip(names, node.args))
        if len(node.args) > len(names):
            raise ParserTypeError(
                f"Function '{self.__name__}' expects {len(names)} argument(s), got {len(node.args)}", parser.span(node)
            )
        rest = []
        for keyword in node.keywords:
            if keyword.arg in names:
                if keyword.arg in given:
                    raise ParserTypeError(
                        f"Function '{self.__name__}' got multiple values for argument '{keyword.arg}'",
                        parser.span(keyword.value),
                    )
                given[keyword.arg] = keyword.value
            else:
                rest.append(keyword)
        for parameter in self.parameters:
            if parameter.name not in given and parameter.has_default:
                given[parameter.name] = ast.copy_location(ast.Constant(parameter.default), node)
        missing = [n for n in names if n not in given]
        if missing:
            raise ParserTypeError(
                f"Function '{self.__name__}' expects {len(names)} argument(s), got {len(given)}; missing "
                f"'{missing[0]}'",
                parser.span(node),
            )
        return [given[n] for n in names], rest

    # -- steps ---------------------------------------------------------------------------------------------------

    def _bind(self, args: tuple, kwargs: dict[str, Any]) -> BoundArguments:
        if self.kind not in ENTRIES:
            raise TypeError(
                f"@pl.jit.{self.kind.value} function '{self.__name__}' is called from a @pl.jit entry, not directly"
            )
        if args or any(hasattr(v, "dtype") for v in kwargs.values()):
            return self._bind_args(args, kwargs)
        return self._bind_args_from_signature(kwargs)

    def _bind_args(self, args: tuple, kwargs: dict[str, Any]) -> BoundArguments:
        """Bind sample arguments."""
        return self._bound(bind_call(self.__name__, self.parameters, args, kwargs))

    def _bind_args_from_signature(self, kwargs: dict[str, Any]) -> BoundArguments:
        """Bind from the annotations, with values for scalars."""
        return self._bound(bind_signature(self.__name__, self.parameters, kwargs, self.evaluator()))

    def _bound(self, bound: Bound) -> BoundArguments:
        tensors, constants, call_arguments = bound
        for name, axes in self._dynamic_axes.items():
            if name in tensors:
                tensors[name] = tensors[name].with_dynamic(axes)
        return BoundArguments(
            self._param_names(), call_arguments, tensors, constants, self.scalar_dtypes, self.dynamic_dims
        )

    @functools.cached_property
    def _dynamic_axes(self) -> dict[str, set[int]]:
        axes: dict[str, set[int]] = {}
        for name, axis in self.dynamic_dims:
            axes.setdefault(name, set()).add(axis)
        return axes

    @functools.cached_property
    def scalar_dtypes(self) -> dict[str, DataType]:
        """Element types of the annotated scalar parameters."""
        resolver = TypeResolver(self.evaluator())
        written = [p for p in self.parameters if p.kind == "scalar" and p.dtype_node is not None]
        return {p.name: resolver.resolve_dtype(p.dtype_node) for p in written}

    def _compile_to_program(self, tensors: dict[str, TensorMeta], constants: dict[str, Any], *_: Any) -> Program:
        """The program before passes; what else :meth:`_bind_args` gives follows from the function itself."""
        return Specialization(self).run(tensors, constants)

    def _runnable(self, bound: BoundArguments, config: Any) -> Any:
        """The artifact for a call: of this process, else of an earlier one, else compiled and kept for later ones."""
        lowering.check_config(config)
        cache.count("requests")
        key = cache_key(self, bound.tensors, bound.constants, config)
        found = self._cache.get(key)
        if found is not None:
            cache.count("object_hits")
            return found
        place = persistent.place_of(self, key, config)
        if place is None:
            return self._built(bound, config)
        found = self._restored.get(place.name)
        if found is not None:
            cache.count("object_hits")
            return found
        found = persistent.restore(place, config)
        if found is not None:
            self._restored[place.name] = found
            return found
        found = self._built(bound, config)
        persistent.publish(place, found.output_dir)
        return found

    def _built(self, bound: BoundArguments, config: Any) -> Any:
        """A compiled artifact whose binaries are about to be built."""
        lowering.prepare_run(config)
        found = self._compiled(bound, config)
        cache.count("binary_builds")
        return found

    def _compiled(self, bound: BoundArguments, config: Any) -> Any:
        lowering.check_config(config)
        key = cache_key(self, bound.tensors, bound.constants, config)
        found = self._cache.get(key)
        if found is None:
            with self._lock:
                found = self._cache.get(key)
                if found is None:
                    found = self._cache[key] = self._compile(bound, config)
        return found

    def _compile(self, bound: BoundArguments, config: Any) -> Any:
        specialization = Specialization(self)
        cache.count("generation_builds")
        with located_errors(), cache.timed("build_ns"):
            program = specialization.run(bound.tensors, bound.constants)
            with lowering.user_names(specialization.aliases):
                return lowering.compile_program(program, config)

    def __repr__(self) -> str:
        return f"<JITFunction {self.__name__} ({self.kind.value})>"


class _JIT:
    """The object behind ``pl.jit``."""

    def __call__(self, func: Callable | None = None, *, auto_scope: bool = True) -> Any:
        """An orchestration entry; ``auto_scope=False`` when the body places runtime scopes itself."""
        return self._make(Kind.ORCHESTRATION, func, sys._getframe(1), auto_scope=auto_scope)

    def host(self, func: Callable | None = None, *, auto_scope: bool = True, **unknown: Any) -> Any:
        """A host entry that dispatches chip entries."""
        _reject("host", unknown)
        return self._make(Kind.HOST, func, sys._getframe(1), auto_scope=auto_scope)

    def incore(self, func: Callable | None = None, *, level: Level | None = None, **unknown: Any) -> Any:
        """A kernel of one core."""
        _reject("incore", unknown)
        return self._make(Kind.INCORE, func, sys._getframe(1), level=level)

    def inline(self, func: Callable | None = None, *, auto_scope: bool = True, **unknown: Any) -> Any:
        """A function whose statements are spliced into its callers by a pass."""
        _reject("inline", unknown)
        return self._make(Kind.INLINE, func, sys._getframe(1), auto_scope=auto_scope)

    def opaque(self, func: Callable | None = None, **unknown: Any) -> Any:
        """A function whose place follows from its use."""
        _reject("opaque", unknown)
        return self._make(Kind.OPAQUE, func, sys._getframe(1))

    def graph(self, func: Callable | None = None, **unknown: Any) -> Any:
        """An orchestration function that is recorded once and replayed."""
        _reject("graph", unknown)
        return self._make(Kind.GRAPH, func, sys._getframe(1))

    def extern(
        self,
        *,
        core_type: str,
        source: str | os.PathLike | None = None,
        aic_source: str | os.PathLike | None = None,
        aiv_source: str | os.PathLike | None = None,
        dual_aiv_dispatch: bool = False,
        include_dirs: Sequence[str | os.PathLike] = (),
    ) -> Callable[[Callable], JITFunction]:
        """A kernel written in C++; see :func:`pypto.jit.extern.check_sources` for the rules."""
        frame = sys._getframe(1)

        def decorate(func: Callable) -> JITFunction:
            sources = extern_kernels.check_sources(
                func, core_type, source, aic_source, aiv_source, dual_aiv_dispatch, include_dirs
            )
            return JITFunction(func, Kind.EXTERN, frame, extern=sources)

        return decorate

    @staticmethod
    def _make(kind: Kind, func: Callable | None, frame: FrameType, **options: Any) -> Any:
        def decorate(target: Any) -> JITFunction:
            check_decorated(target, "@pl.jit" if kind is Kind.ORCHESTRATION else f"@pl.jit.{kind.value}", frame)
            return JITFunction(target, kind, frame, **options)

        return decorate if func is None else decorate(func)


def _reject(name: str, unknown: dict[str, Any]) -> None:
    if unknown:
        raise TypeError(f"@pl.jit.{name} does not accept {_article(next(iter(unknown)))} argument")


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}="


jit = _JIT()
