"""Arguments of a call of a JIT entry: tensors, scalars, defaults, signature mode."""

from __future__ import annotations

from typing import Any, NamedTuple

from pypto.ir.dtype import DataType
from pypto.jit.annotations import Parameter
from pypto.jit.dynamic_dims import DynamicDims
from pypto.jit.tensor_meta import TensorMeta, is_tensor, meta_of
from pypto.language.parser.expr_evaluator import ExprEvaluator
from pypto.language.parser.type_resolver import TypeResolver
from pypto.language.typing.dynamic import RUNTIME, DynVar


class BoundArguments(NamedTuple):
    """Arguments of an entry by parameter; ``tensors`` and ``constants`` decide the specialisation."""

    names: list[str]
    call_arguments: tuple
    tensors: dict[str, TensorMeta]
    constants: dict[str, Any]
    scalar_dtypes: dict[str, DataType]
    dynamic_dims: DynamicDims


#: Tensors and constants by parameter, and the arguments of the call in parameter order.
Bound = tuple[dict[str, TensorMeta], dict[str, Any], tuple]


def bind_call(name: str, parameters: list[Parameter], args: tuple, kwargs: dict[str, Any]) -> Bound:
    """Bind sample arguments; every parameter must get a value.

    Raises:
        TypeError: missing, repeated or unknown arguments, an unsupported element type, ``pl.RUNTIME``.
        ValueError: an array that is no torch tensor.
    """
    values = _by_name(name, parameters, args, kwargs)
    tensors: dict[str, TensorMeta] = {}
    constants: dict[str, Any] = {}
    for parameter in parameters:
        value = values[parameter.name]
        if value is RUNTIME:
            raise TypeError(
                f"@pl.jit function '{name}': parameter '{parameter.name}' received pl.RUNTIME together with sample "
                "tensors; use it in signature mode, without tensors"
            )
        if is_tensor(value) and parameter.kind != "scalar":
            meta = meta_of(value)
            tensors[parameter.name] = TensorMeta(meta.shape, meta.dtype, parameter.layout)
        elif parameter.kind == "tensor":
            raise ValueError(
                f"@pl.jit: missing inferred tensor metadata for parameter '{parameter.name}': a torch tensor is "
                f"expected, got {type(value).__name__}"
            )
        elif is_tensor(value):
            raise TypeError(f"Parameter '{parameter.name}' is a scalar; got torch.Tensor of shape {list(value.shape)}")
        elif isinstance(value, (bool, int, float)):
            constants[parameter.name] = value
        else:
            raise TypeError(
                f"@pl.jit function '{name}': parameter '{parameter.name}' must be a tensor or a number, got "
                f"{type(value).__name__}"
            )
    return tensors, constants, tuple(values[p.name] for p in parameters)


def _by_name(name: str, parameters: list[Parameter], args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    names = [p.name for p in parameters]
    if len(args) > len(names):
        raise TypeError(
            f"@pl.jit function '{name}': too many positional arguments: takes {len(names)} ({', '.join(names)}), "
            f"got {len(args)}"
        )
    values = dict(zip(names, args))
    for key, value in kwargs.items():
        if key not in names:
            raise TypeError(f"@pl.jit function '{name}': got an unexpected keyword argument '{key}'")
        if key in values:
            raise TypeError(f"@pl.jit function '{name}': multiple values for argument '{key}'")
        values[key] = value
    for parameter in parameters:
        if parameter.name not in values:
            if not parameter.has_default:
                raise TypeError(f"@pl.jit function '{name}': missing a required argument: '{parameter.name}'")
            values[parameter.name] = parameter.default
    return values


def bind_signature(name: str, parameters: list[Parameter], kwargs: dict[str, Any], evaluator: ExprEvaluator) -> Bound:
    """Bind from the annotations alone: shapes as written, scalars from keywords or defaults.

    Raises:
        TypeError: a bare ``pl.Tensor``, a scalar without value, an unknown keyword.
    """
    known = {p.name for p in parameters}
    for key in kwargs:
        if key not in known:
            raise TypeError(f"@pl.jit function '{name}': got an unexpected keyword argument '{key}'")
    resolver = TypeResolver(evaluator)
    tensors: dict[str, TensorMeta] = {}
    constants: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind == "tensor":
            tensors[parameter.name] = _written_meta(name, parameter, resolver)
            continue
        if parameter.annotation is None:
            raise TypeError(
                f"@pl.jit function '{name}': cannot infer parameter '{parameter.name}' from the signature because it "
                "has no annotation"
            )
        value = kwargs.get(parameter.name, parameter.default if parameter.has_default else None)
        if value is RUNTIME:
            continue
        if not isinstance(value, (bool, int, float)):
            raise TypeError(
                f"@pl.jit function '{name}': scalar parameter '{parameter.name}' needs a number (by keyword or "
                f"default) or pl.RUNTIME, got {type(value).__name__}"
            )
        constants[parameter.name] = value
    return tensors, constants, ()


def _written_meta(name: str, parameter: Parameter, resolver: TypeResolver) -> TensorMeta:
    if parameter.shape_node is None or parameter.dtype_node is None:
        raise TypeError(
            f"@pl.jit function '{name}': cannot infer parameter '{parameter.name}': cannot specialize from the "
            f"signature because parameter '{parameter.name}' has a bare 'pl.Tensor' annotation with no shape. Give it "
            "a full 'pl.Tensor[[...], dtype]' annotation, or pass sample tensors to lower(*sample_tensors) or "
            "compile(*sample_tensors)."
        )
    shape = tuple(_extent(d) for d in resolver._parse_shape(parameter.shape_node))
    return TensorMeta(shape, resolver.resolve_dtype(parameter.dtype_node), parameter.layout)


def _extent(value: Any) -> Any:
    return value.var if isinstance(value, DynVar) else value
