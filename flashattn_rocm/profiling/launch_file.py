"""Launch descriptions: TOML files that say how to launch a kernel of any code object.

    code_object = "saxpy.co"    # relative to this file
    kernel = "saxpy"
    grid = [120]                # workgroups in x, y, z
    block = [256]               # work-items in x, y, z
    dynamic_lds = 0             # bytes
    useful_flop = 61440         # optional: gives TFLOPS and the place on the roofline

    [[arguments]]               # in the kernel's order
    kind = "buffer"
    dtype = "f32"
    size = 30720                # elements
    fill = "random"             # "zeros", or file = "x.bin" in place of fill

    [[arguments]]
    kind = "scalar"
    dtype = "f32"
    value = 2.0

Scalars and the addresses of buffers are packed at their natural alignment; a struct passed by value is
written as its members, one scalar each.
"""

import struct
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal

import torch

from flashattn_rocm.profiling.profile import (
    FP16_FLOP_PER_LANE_CLOCK,
    FP32_FLOP_PER_LANE_CLOCK,
    Profile,
    parse_profile,
)
from flashattn_rocm.profiling.work import Work
from flashattn_rocm.sim import hip

try:
    from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, model_validator
except ImportError as error:
    raise ImportError(
        "launch files need pydantic, which is not installed: pip install 'flashattn-rocm[profile]'"
    ) from error

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Dtype = Literal["f16", "f32", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"]

# struct's letter and torch's dtype; torch fills unsigned ones as the signed one of their size.
_DTYPES: dict[Dtype, tuple[str, torch.dtype]] = {
    "f16": ("e", torch.float16),
    "f32": ("f", torch.float32),
    "f64": ("d", torch.float64),
    "i8": ("b", torch.int8),
    "u8": ("B", torch.int8),
    "i16": ("h", torch.int16),
    "u16": ("H", torch.int16),
    "i32": ("i", torch.int32),
    "u32": ("I", torch.int32),
    "i64": ("q", torch.int64),
    "u64": ("Q", torch.int64),
}
_FLOP_PER_LANE_CLOCK = {"f16": FP16_FLOP_PER_LANE_CLOCK, "f32": FP32_FLOP_PER_LANE_CLOCK}
_RANDOM_BELOW = 128  # random integers are in [0, 128), which every integer dtype holds


class LaunchFileError(ValueError):
    """A launch description that cannot be used; names the file, the key and what is allowed."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Buffer(_Strict):
    """Device memory; the kernel gets its address.

    Attributes:
        kind: "buffer".
        dtype: of an element.
        size: elements.
        fill: "zeros" or "random": floats from a standard normal, integers in [0, 128).
        file: raw content of exactly size elements, in place of fill; relative to the launch file.
        seed: of random content.
    """

    kind: Literal["buffer"]
    dtype: Dtype
    size: PositiveInt
    fill: Literal["zeros", "random"] | None = None
    file: Path | None = None
    seed: int = 0

    @model_validator(mode="after")
    def _one_content(self) -> "Buffer":
        if (self.fill is None) == (self.file is None):
            raise ValueError('a buffer has either fill ("zeros" or "random") or file')
        return self

    def content(self, folder: Path) -> bytes:
        """The bytes to start from; `folder` is that of the launch file."""
        letter, dtype = _DTYPES[self.dtype]
        expected = self.size * struct.calcsize(letter)
        if self.file is not None:
            data = (folder / self.file).read_bytes()
            if len(data) != expected:
                raise LaunchFileError(
                    f"{folder / self.file} has {len(data)} bytes; {self.size} of {self.dtype} are {expected}"
                )
            return data
        if self.fill == "zeros":
            return bytes(expected)
        generator = torch.Generator().manual_seed(self.seed)
        if dtype.is_floating_point:
            values = torch.randn(self.size, generator=generator).to(dtype)
        else:
            values = torch.randint(_RANDOM_BELOW, (self.size,), generator=generator).to(dtype)
        return values.numpy().tobytes()


class Scalar(_Strict):
    """A value passed as it is."""

    kind: Literal["scalar"]
    dtype: Dtype
    value: float | int

    @model_validator(mode="after")
    def _fits(self) -> "Scalar":
        try:
            self.packed()
        except (struct.error, OverflowError) as error:
            raise ValueError(f"value {self.value} is no {self.dtype}: {error}") from error
        return self

    def packed(self) -> bytes:
        """Little-endian bytes."""
        return struct.pack("<" + _DTYPES[self.dtype][0], self.value)


Extent = Annotated[list[PositiveInt], Field(min_length=1, max_length=3)]


class LaunchFile(_Strict):
    """A launch description; the module's text has an example.

    Attributes:
        code_object: an ELF code object or an offload bundle; relative to the launch file.
        kernel: its name.
        grid: workgroups in x, y, z.
        block: work-items in x, y, z.
        dynamic_lds: bytes.
        arguments: in the kernel's order.
        useful_flop: of the launch, a fused multiply-add counts as two; None: no TFLOPS and no roofline.
        peak: dtype of the peak to compare with.
    """

    code_object: Path
    kernel: str
    grid: Extent
    block: Extent
    dynamic_lds: int = Field(0, ge=0)
    arguments: list[Annotated[Buffer | Scalar, Field(discriminator="kind")]] = []
    useful_flop: float | None = Field(None, gt=0)
    peak: Literal["f16", "f32"] = "f32"

    def work(self) -> Work | None:
        """What the file states of the algorithm; None if it states nothing."""
        if self.useful_flop is None:
            return None
        return Work(
            useful_flop=self.useful_flop,
            flop_per_lane_clock=_FLOP_PER_LANE_CLOCK[self.peak],
            peak_name={"f16": "fp16 dot2", "f32": "fp32 fma"}[self.peak],
        )


def read_launch_file(path: Path) -> LaunchFile:
    """Reads and checks a launch description.

    Raises:
        LaunchFileError: it is missing, no TOML, or a key is unknown, missing or out of range.
    """
    try:
        raw: dict[str, Any] = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise LaunchFileError(f"{path}: {error}") from error
    try:
        return LaunchFile(**raw)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}; got {e['input']!r}" for e in error.errors()]
        raise LaunchFileError(f"{path}: " + "; ".join(lines)) from error


def profile_launch(launch: LaunchFile, folder: Path) -> Profile:
    """Runs a launch on the simulated card with timing.

    Args:
        launch: what to run.
        folder: that its paths are relative to.

    Raises:
        LaunchFileError: a file that it names is missing or has a wrong size.
        HipError: the card refuses the code object or the launch, or the kernel faults.
    """
    code_object = folder / launch.code_object
    if not code_object.is_file():
        raise LaunchFileError(f"code_object {code_object} is no file")
    simulator = hip.simulator()
    with ExitStack() as stack:
        module = stack.enter_context(hip.Module(simulator, code_object))
        arguments = bytearray()
        for argument in launch.arguments:
            if isinstance(argument, Buffer):
                content = _content(argument, folder)
                memory = stack.enter_context(hip.Buffer(simulator, len(content)))
                memory.write(content)
                packed = struct.pack("<Q", memory.address)
            else:
                packed = argument.packed()
            arguments += bytes(-len(arguments) % len(packed)) + packed
        text = simulator.launch_timed(
            module.function(launch.kernel),
            bytes(arguments),
            grid=_three(launch.grid),
            block=_three(launch.block),
            dynamic_lds=launch.dynamic_lds,
        )
    return parse_profile(text)


def _content(buffer: Buffer, folder: Path) -> bytes:
    try:
        return buffer.content(folder)
    except OSError as error:
        raise LaunchFileError(f"file of a buffer: {error}") from error


def _three(extent: list[int]) -> tuple[int, int, int]:
    x, y, z = [*extent, 1, 1][:3]
    return x, y, z
