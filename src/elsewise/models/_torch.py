"""torch modules: evaluated where they live, slopes by automatic differentiation."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from elsewise._arrays import Array
from elsewise._resources import ask_in_time, model_threads
from elsewise.errors import InvalidInput, ModelError
from elsewise.models._outputs import (
    PROBES,
    check_shape,
    model_raised,
    movable_columns,
    same_outputs,
    select_by_position,
    unusable,
)

if TYPE_CHECKING:
    from elsewise.features import Encoder, Feature


# Whole numbers up to here are exact in float32.
EXACT_SINGLE = 2.0**24
# Nodes of an autograd graph that leave values as they are.
RESHAPES = ("Squeeze", "Unsqueeze", "View", "UnsafeView", "Reshape", "Select", "Slice", "ToCopy")


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchModel:
    """A torch module and how to call it; made by `torch_model`."""

    module: Any
    """The module."""
    prepare: Callable[[Any], Any] | None = None
    """Tensor of codes (n, p) to the module's input, differentiable; None: the codes themselves."""
    output: int | None = None
    """Column to explain; None: all."""
    probability: bool | None = None
    """Whether the outputs are probabilities; None: look at the last operation."""
    tensors: bool = False
    """Whether rows are kept as tensors where the module is, even on the CPU."""


def is_torch_module(model: object) -> bool:
    """Tell whether ``model`` is a torch module, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def torch_model(
    module: Any,
    prepare: Callable[[Any], Any] | None = None,
    output: int | None = None,
    *,
    probability: bool | None = None,
    device: str | None = None,
) -> TorchModel:
    """Describe how a torch module is called, to be explained as a model.

    Parameters
    ----------
    module : torch.nn.Module
        Returns (n,), (n, 1) or (n, K). A row's output must not depend on the other rows.
    prepare : callable, optional
        Differentiable function from the tensor of codes (n, p), all columns of the frame in order,
        to the module's input: scaling, one-hot encoding, a choice of columns. Codes are floats:
        numbers as they are, a category the position of its level (``schema[name].levels``) as a
        whole number, a missing cell NaN. ``codes[:, 2].long()`` feeds an embedding layer.
    output : int, optional
        Column to explain where there are several; by default all.
    probability : bool, optional
        Whether the outputs are probabilities. By default, whether a sigmoid or softmax comes last.
    device : str, optional
        Where to run a copy of the module, e.g. "cuda", and to keep the rows as tensors; by default
        the module stays where it is, and rows are tensors only if that is not the CPU. A frame of
        float32 columns is searched in single precision there, any other in double precision.

    Returns
    -------
    TorchModel
        To be passed as ``model``.

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Sigmoid())
    >>> torch_model(net, prepare=lambda codes: codes / 10).output is None
    True
    """
    if not is_torch_module(module):
        fix = "pass the module, or use elsewise.models.function for a function"
        raise InvalidInput("module", "a torch.nn.Module", type(module).__name__, fix)
    if device is not None:
        import torch

        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            received = f"{device!r} ({error})"
            fix = "install a torch built for it, or leave device out to stay where the module is"
            raise InvalidInput("device", "a device this torch can use", received, fix) from error
        module = copy.deepcopy(module).to(device)
    return TorchModel(
        module=module,
        prepare=prepare,
        output=output,
        probability=probability,
        tensors=device is not None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchOutputs:
    """The chosen outputs of a torch module; see `Outputs`."""

    module: Any
    """The module; its parameters and training flags are left as they are."""
    prepare: Callable[[Any], Any] | None
    """Codes to the module's input."""
    keep: tuple[int, ...]
    """Positions of the chosen outputs."""
    movable: Any
    """Which codes can move: bool tensor (p,) on the module's device."""
    dtype: Any
    """Floating dtype of the parameters; None without parameters."""
    probability: bool = False
    """Whether the chosen outputs are probabilities."""
    smooth: bool = False
    """Whether the outputs have slopes that are not all zero."""
    width: int | None = None
    """Number of outputs of the module, once known."""
    codes: Any = None
    """Dtype of codes kept as tensors; None where they are NumPy's."""

    @property
    def columns(self) -> int:
        """Number of chosen outputs, K."""
        return len(self.keep)

    @property
    def description(self) -> str:
        """Readable name of the chosen outputs."""
        name = type(self.module).__name__
        return name if self.columns == self.width else f"{name}, output {self.keep[0]}"

    def place(self, codes: np.ndarray) -> Array:
        """Return codes (n, p) as a tensor where the module is, or as they are."""
        if self.codes is None:
            return codes
        import torch

        return torch.as_tensor(codes, device=self.movable.device).to(self.codes)

    def precise(self, probe: np.ndarray) -> TorchOutputs:
        """Return a copy in double precision, if rows are NumPy's and the module works in it."""
        import torch

        if self.codes is not None or self.dtype in (None, torch.float64):
            return self
        few = probe[:PROBES]
        try:
            twin = replace(self, module=copy.deepcopy(self.module).double(), dtype=torch.float64)
            same = same_outputs(twin.values(few), self.values(few), rtol=1e-3, atol=1e-4)
        except (ModelError, RuntimeError, TypeError):
            return self
        return twin if same else self

    def values(self, codes: Array) -> Array:
        """Return the outputs (n, K) of codes (n, p)."""
        import torch

        ask_in_time()
        tensor = self._tensor(codes)
        with torch.no_grad(), evaluating(self.module), model_threads(len(codes)):
            outputs = self._outputs(tensor)
        return self._like(self._kept(outputs), codes)

    def values_and_gradient(self, codes: Array) -> tuple[Array, Array]:
        """Return outputs (n, K) and d output / d codes (n, K, p)."""
        ask_in_time()
        with model_threads(len(codes)):
            outputs, gradient = self._differentiate(self._tensor(codes))
        return self._like(self._kept(outputs.detach()), codes), self._like(gradient, codes)

    def _differentiate(self, tensor: Any) -> tuple[Any, Any]:
        """Return all outputs (n, W), in their graph, and the slopes (n, K, p) of the chosen."""
        import torch

        with torch.inference_mode(False), torch.enable_grad(), evaluating(self.module):
            leaf = tensor.detach().clone().requires_grad_(True)
            outputs = self._outputs(leaf)
            slopes = [self._slope(outputs[:, k], leaf) for k in self.keep]
        return outputs, torch.stack(slopes, dim=1)

    def _slope(self, output: Any, leaf: Any) -> Any:
        """Return d output / d codes (n, p): rows are independent, so their sum serves them all."""
        import torch

        if not output.requires_grad:
            return torch.zeros_like(leaf)
        (slope,) = torch.autograd.grad(output.sum(), leaf, retain_graph=True, allow_unused=True)
        if slope is None:
            return torch.zeros_like(leaf)
        # A kink such as |x| at 0 may give NaN: no direction there, other proposals serve the row.
        usable = self.movable & torch.isfinite(slope)
        return torch.where(usable, slope, torch.zeros_like(slope))

    def _kept(self, outputs: Any) -> Any:
        """Return the chosen outputs (n, K), all of them or one, in memory of their own.

        A module may write its next outputs over these, and what is not chosen need not be kept.
        """
        first = self.keep[0]
        return outputs[:, first : first + self.columns].clone()

    def _outputs(self, tensor: Any) -> Any:
        """Return all outputs (n, W) of a tensor of codes (n, p), checked."""
        import torch

        name = type(self.module).__name__
        inputs = tensor if self.dtype is None else tensor.to(self.dtype)
        try:
            outputs = self.module(inputs if self.prepare is None else self.prepare(inputs))
        except Exception as error:
            raise model_raised(name, error) from error
        if not isinstance(outputs, torch.Tensor) or outputs.is_complex():
            raise unusable(name, "a real tensor", type(outputs).__name__)
        if outputs.ndim == 1:
            outputs = outputs[:, None]
        check_shape(outputs.shape, len(tensor), name, self.width)
        if not bool(torch.isfinite(outputs).all()):
            raise unusable(name, "finite numbers", "NaN or infinity")
        return outputs

    def _tensor(self, codes: Array) -> Any:
        """Return codes as a tensor on the module's device, where they must already be."""
        import torch

        home = self.movable.device
        if isinstance(codes, np.ndarray):
            codes = torch.from_numpy(np.ascontiguousarray(codes))
        if codes.device != home:
            expected, fix = f"codes on {home}, as the model", "move them with Outputs.place(codes)"
            raise InvalidInput("codes", expected, f"codes on {codes.device}", fix)
        return codes

    def _like(self, tensor: Any, codes: Array) -> Array:
        """Return a result as the codes are: float64 NumPy, or a tensor of their dtype."""
        if isinstance(codes, np.ndarray):
            return tensor.cpu().numpy().astype(np.float64, copy=False)
        return tensor.to(codes.dtype)


def bind_torch(
    model: TorchModel, encoder: Encoder, output: Hashable | None, probe: np.ndarray
) -> TorchOutputs:
    """Return the outputs of a torch module on the codes of ``encoder``."""
    import torch

    device, dtype = _home(model.module)
    outputs = TorchOutputs(
        module=model.module,
        prepare=model.prepare,
        keep=(),
        movable=torch.from_numpy(movable_columns(encoder)).to(device),
        dtype=dtype,
        codes=_codes_dtype(encoder, dtype) if model.tensors or device.type != "cpu" else None,
    )
    rows = torch.from_numpy(probe[:PROBES]).to(device)
    with torch.no_grad(), evaluating(model.module):
        width = outputs._outputs(rows).shape[1]
    keep = select_by_position(model.output if output is None else output, width)
    outputs = replace(outputs, keep=keep, width=width)
    values, slopes = outputs._differentiate(rows)
    probability = model.probability
    if probability is None:
        kept = outputs._kept(values.detach())
        probability = bool(((kept >= 0) & (kept <= 1)).all()) and _squashed_last(values)
    return replace(outputs, probability=probability, smooth=bool(slopes.any()))


def _codes_dtype(encoder: Encoder, dtype: Any) -> Any:
    """Return float32 for a module of that precision if it holds every cell, else float64."""
    import torch

    def fits(feature: Feature, column: Any) -> bool:
        if feature.kind == "number":
            return isinstance(column, np.dtype) and column.kind == "f" and column.itemsize <= 4
        return max(map(abs, feature.observed), default=0.0) <= EXACT_SINGLE

    columns = zip(encoder.schema.features, encoder.dtypes, strict=True)
    single = dtype == torch.float32 and all(fits(*column) for column in columns)
    return torch.float32 if single else torch.float64


def _home(module: Any) -> tuple[Any, Any]:
    """Return the one device and the floating dtype of a module's parameters and buffers."""
    import torch

    tensors = [*module.parameters(), *module.buffers()]
    devices = sorted({str(tensor.device) for tensor in tensors})
    if len(devices) > 1:
        received, fix = f"parameters on {', '.join(devices)}", "move it with module.to(device)"
        raise InvalidInput("model", "a module on one device", received, fix)
    dtype = next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), None)
    return torch.device(devices[0] if devices else "cpu"), dtype


def _squashed_last(outputs: Any) -> bool:
    """Tell whether the last operation was a sigmoid or a softmax, reshapes aside."""
    node = outputs.grad_fn
    while node is not None and type(node).__name__.startswith(RESHAPES):
        node = node.next_functions[0][0]
    return type(node).__name__.startswith(("Sigmoid", "Softmax"))


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Hold a module in evaluation mode; every submodule's own training flag comes back."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True
