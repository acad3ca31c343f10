"""configs/<arch>.toml: the device's facts and the tile shapes."""

import sys
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from typing_extensions import Self

from buildlib.errors import BuildError
from buildlib.paths import CONFIGS, ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_BASE_ARCH = "gfx906"
Element = Literal["f16", "bf16", "f32"]
BYTE_FORMATS = ("int8", "e4m3", "e5m2")  # of a KV cache


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Device(_Strict):
    """What every card of the arch has."""

    lds_bytes_per_workgroup: int = Field(gt=0)
    vgprs_per_lane: int = Field(gt=0)
    waves_per_simd: int = Field(gt=0)


class Lds(_Strict):
    """LDS that no tile may use."""

    reserve_bytes: int = Field(ge=0)


class Card(_Strict):
    """A card that the simulator can be; `timing` replaces values of [timing]."""

    key: str = Field(pattern="^[a-z0-9_]+$")
    name: str
    compute_units: int = Field(gt=0)
    clock_mhz: float = Field(gt=0, strict=False)
    memory_gib: int = Field(gt=0)
    hbm_gbps: float = Field(gt=0, strict=False)
    timing: dict[str, int | float] = {}


class Clocks(_Strict):
    """Clocks of one workgroup, as the tuner measured them; dispatch weighs tiles by them."""

    fixed: int = Field(ge=0)
    step: int = Field(gt=0)
    step_full: int = Field(gt=0)


_POLICIES = ("kv", "operands", "rescale", "access", "scores", "numbers")


class TileShape(_Strict):
    """What a kernel is compiled from: csrc/core/tile.h says what each key means."""

    head_dim: int = Field(gt=0, le=512, multiple_of=16)
    head_dim_v: int = Field(default=0, ge=0, le=512, multiple_of=16)
    block_m: int = Field(gt=0)
    block_n: int = Field(gt=0, multiple_of=16)
    waves: int = Field(gt=0, le=16)
    p_keys: int = Field(gt=0, multiple_of=16)
    kv: Literal["apart", "in_turns"] = "apart"
    operands: Literal["streamed", "on_demand"] = "streamed"
    rescale: Literal["lazy", "always"] = "lazy"
    access: Literal["chunks", "elements"] = "chunks"
    scores: Literal["plain", "modified"] = "plain"
    numbers: Literal["16bit", "f32"] = "16bit"

    kind_keys: ClassVar[tuple[str, ...]] = ("access", "scores", "numbers")

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.block_m % (4 * self.waves) != 0:
            raise ValueError(
                f"block_m={self.block_m} must be a multiple of 4 rows in each of waves={self.waves}"
            )
        for key in ("block_n", "p_keys"):
            if self.numbers == "16bit" and getattr(self, key) % 32 != 0:
                raise ValueError(
                    f"{key}={getattr(self, key)} must be a multiple of 32: keys are paired 16 apart"
                )
        if self.block_n % self.p_keys != 0:
            raise ValueError(f"p_keys={self.p_keys} must divide block_n={self.block_n}")
        for what, rows, columns in (
            (f"block_m={self.block_m}: Q has", self.block_m, self.head_dim),
            (f"block_n={self.block_n}: K has", self.block_n, self.head_dim),
            self._v_rows,
        ):
            at_once = self._rows_at_once(columns)
            if rows > at_once and rows % at_once != 0:
                raise ValueError(
                    f"{what} {rows} rows, of which {self.threads} threads move {at_once} at once"
                )
        return self

    @property
    def _v_rows(self) -> tuple[str, int, int]:
        if self.numbers == "f32":
            return f"block_n={self.block_n}: V has", self.block_n, self.columns_v
        return f"block_n={self.block_n}: V has, by pairs of keys,", self.block_n // 2, self.columns_v

    def _rows_at_once(self, columns: int) -> int:
        """Rows that the threads move together, 16 bytes each (csrc/attention/tile_io.h asserts the same)."""
        lanes, numbers = 2, 4 if self.numbers == "f32" else 8
        while lanes * numbers < columns:
            lanes *= 2
        return self.threads // lanes

    @property
    def columns_v(self) -> int:
        """Columns of V and O; those of Q and K unless the row says otherwise."""
        return self.head_dim_v or self.head_dim

    @property
    def threads(self) -> int:
        """Threads of a workgroup: 64 a wave on every GCN card."""
        return self.waves * 64

    @property
    def name(self) -> str:
        """The whole tile in short, defaults left out; part of the kernels' symbols."""
        dims = f"d{self.head_dim}" + (f"v{self.head_dim_v}" if self.columns_v != self.head_dim else "")
        parts = [dims, f"m{self.block_m}n{self.block_n}w{self.waves}p{self.p_keys}", *self.policies.values()]
        return "_".join(parts)

    @property
    def elements(self) -> tuple[Element, ...]:
        """What Q, K, V and O of the tile can hold: one kernel for each."""
        return ("f32",) if self.numbers == "f32" else ("f16", "bf16")

    @property
    def policies(self) -> dict[str, str]:
        """How data flows, and of which numbers, as far as it is not the default."""
        found = {key: getattr(self, key) for key in _POLICIES}
        return {key: value for key, value in found.items() if value != TileShape.model_fields[key].default}

    @property
    def kind(self) -> tuple[str, ...]:
        """Which calls a kernel of the tile serves, beside its head dim: tiles compete within a kind."""
        return tuple(getattr(self, key) for key in self.kind_keys)

    @property
    def keys(self) -> dict[str, int | str]:
        """All keys, with what they default to."""
        return {key: getattr(self, key) for key in TileShape.model_fields} | {"head_dim_v": self.columns_v}

    @property
    def cpp(self) -> str:
        """The row as a C++ value of type Tile."""
        numbers = (self.head_dim, self.columns_v, self.block_m, self.block_n, self.waves, self.p_keys)
        return (
            f"flashattn::Tile{{{', '.join(map(str, numbers))}, flashattn::KvBuffers::{self.kv}, "
            f"flashattn::Operands::{self.operands}, flashattn::Rescale::{self.rescale}, "
            f"flashattn::Access::{self.access}, flashattn::Scores::{self.scores}}}"
        )


class FwdTile(TileShape):
    """One row [[fwd]]: a tile, and what dispatch knows of its kernels."""

    workgroups_per_cu: int = Field(gt=0, le=16)
    clocks: Clocks
    # Also a kernel that cuts query blocks along the keys, where grids fill the card unevenly.
    split: bool = False
    why: str = Field(min_length=1)

    @model_validator(mode="after")
    def _can_split(self) -> Self:
        if self.split and self.scores != "plain":
            raise ValueError(f"split=true goes with scores='plain', not with {self.scores!r}")
        if self.split and self.block_m % 16 != 0:  # rows of a workgroup of the combining kernel
            raise ValueError(f"split=true wants block_m to be a multiple of 16; it is {self.block_m}")
        if self.split and self.numbers != "16bit":
            raise ValueError(f"split=true goes with numbers='16bit', not with {self.numbers!r}")
        return self


class TileKernel(BaseModel):
    """A kernel to compile: a tile for one kind of element."""

    model_config = ConfigDict(frozen=True)

    tile: TileShape
    element: Element

    @property
    def name(self) -> str:
        """The symbol."""
        return f"flashattn_fwd_{self.element}_{self.tile.name.removesuffix('_f32')}"

    @property
    def keys(self) -> dict[str, Any]:
        """All keys of the tile and the element, as the extension takes them."""
        return {**self.tile.keys, "element": self.element}

    @property
    def cpp(self) -> str:
        """Arguments of the template flashattn::fwd."""
        return f"{self.tile.cpp}, flashattn::Element::{self.element}"


class FwdKernel(TileKernel):
    """A kernel of the build."""

    tile: FwdTile
    split: bool = False

    @property
    def name(self) -> str:
        """The symbol."""
        return super().name + ("_split" if self.split else "")

    @property
    def keys(self) -> dict[str, Any]:
        """All that dispatch weighs as well."""
        clocks = self.tile.clocks.model_dump()
        weighed = {"workgroups_per_cu": self.tile.workgroups_per_cu, "clocks": clocks, "split": self.split}
        return {**super().keys, "name": self.name, **weighed}


class BwdShape(TileShape):
    """What a kernel of the backward is compiled from; block_m is of the rows that a workgroup owns."""

    gradient: Literal["dq", "dkdv"]

    kind_keys: ClassVar[tuple[str, ...]] = ("gradient", *TileShape.kind_keys)

    @model_validator(mode="after")
    def _moves_rows_of_both_sides(self) -> Self:
        by_pairs = self.numbers == "16bit"
        for what, rows, columns in (
            (f"block_m={self.block_m}", self.block_m, self.columns_v),
            (
                f"block_n={self.block_n}" + ", by pairs of rows," * by_pairs,
                self.block_n // 2 if by_pairs else self.block_n,
                self.head_dim,
            ),
        ):
            at_once = self._rows_at_once(columns)
            if rows > at_once and rows % at_once != 0:
                raise ValueError(
                    f"{what} has {rows} rows, of which {self.threads} threads move {at_once} at once"
                )
        return self

    @property
    def name(self) -> str:
        """The whole tile in short, with what it computes."""
        return f"{self.gradient}_{super().name}"

    @property
    def keys(self) -> dict[str, int | str]:
        """All keys, with what they default to."""
        return {"gradient": self.gradient, **super().keys}


class BwdTile(BwdShape):
    """One row [[bwd]]. A row of 16-bit numbers can be for some kinds of them only."""

    for_elements: tuple[Literal["f16", "bf16"], ...] = Field(
        default=("f16", "bf16"), min_length=1, strict=False
    )
    workgroups_per_cu: int = Field(gt=0, le=16)
    why: str = Field(min_length=1)

    @model_validator(mode="after")
    def _is_of_the_backward(self) -> Self:
        for key in ("kv", "rescale"):
            if key in self.model_fields_set:
                raise ValueError(f"{key} is a key of [[fwd]] rows; the backward has no such choice")
        if self.numbers == "f32" and "for_elements" in self.model_fields_set:
            raise ValueError("for_elements is for rows of 16-bit numbers; numbers='f32' says it all")
        return self

    @property
    def elements(self) -> tuple[Element, ...]:
        """What the row is for."""
        return self.for_elements if self.numbers == "16bit" else ("f32",)


class GradientKernel(TileKernel):
    """A kernel of the backward to compile."""

    tile: BwdShape

    @property
    def name(self) -> str:
        """The symbol."""
        gradient, _, shape = self.tile.name.removesuffix("_f32").partition("_")
        return f"flashattn_{gradient}_{self.element}_{shape}"

    @property
    def cpp(self) -> str:
        """Arguments of the template flashattn::bwd."""
        return f"{super().cpp}, flashattn::Gradient::{self.tile.gradient}"


class BwdKernel(GradientKernel):
    """A kernel of the build."""

    tile: BwdTile


def kernel_of(tile: TileShape, element: Element) -> TileKernel:
    """The kernel of a tile, of the forward or the backward."""
    if isinstance(tile, BwdShape):
        return GradientKernel(tile=tile, element=element)
    return TileKernel(tile=tile, element=element)


class DecodeTile(_Strict):
    """One row [[decode]]: csrc/core/decode_tile.h says what each key means."""

    head_dim: Literal[64, 128, 256, 512]
    rows: Literal[4, 8, 16]
    waves: int = Field(gt=0, le=16)
    access: Literal["chunks", "elements"] = "chunks"
    format: Literal["plain", "int8", "e4m3", "e5m2"] = "plain"
    rope: Literal[0, 64] = 0
    k_columns: Literal[8, 16] = 8
    v_columns: Literal[4, 8] = 8
    elements: tuple[Element, ...] = Field(default=("f16", "bf16"), min_length=1, strict=False)
    workgroups_per_cu: int = Field(gt=0, le=16)
    compute_share: float = Field(gt=0)
    why: str = Field(min_length=1)

    @property
    def threads(self) -> int:
        """Threads of a workgroup."""
        return self.waves * 64

    @property
    def name(self) -> str:
        """The whole tile in short, defaults left out; part of the kernels' symbols."""
        access = "" if self.access == "chunks" else f"_{self.access}"
        of = "" if self.format == "plain" else f"_{self.format}"
        rope = f"_rope{self.rope}" if self.rope else ""
        columns = "" if self.k_columns == 8 else f"_k{self.k_columns}"
        columns += "" if self.v_columns == 8 else f"_v{self.v_columns}"
        return f"d{self.head_dim}r{self.rows}w{self.waves}{columns}{access}{of}{rope}"

    @property
    def cpp(self) -> str:
        """The row as a C++ value of type DecodeTile."""
        return (
            f"flashattn::DecodeTile{{{self.head_dim}, {self.rows}, {self.waves}, "
            f"flashattn::Access::{self.access}, {self.rope}, {self.k_columns}, {self.v_columns}}}"
        )


class DecodeKernel(BaseModel):
    """A kernel of the decode family."""

    model_config = ConfigDict(frozen=True)

    tile: DecodeTile
    element: Element

    @property
    def name(self) -> str:
        """The symbol."""
        return f"flashattn_decode_{self.element}_{self.tile.name}"

    @property
    def cpp(self) -> str:
        """Arguments of the template flashattn::decode."""
        return f"{self.tile.cpp}, flashattn::Element::{self.element}, flashattn::KvFormat::{self.tile.format}"


class TileConfig(_Strict):
    """One file."""

    device: Device
    lds: Lds
    fwd: tuple[FwdTile, ...] = Field(min_length=1, strict=False)
    bwd: tuple[BwdTile, ...] = Field(default=(), strict=False)
    decode: tuple[DecodeTile, ...] = Field(default=(), strict=False)
    card: tuple[Card, ...] = Field(default=(), strict=False)
    timing: dict[str, int | float] = {}

    def fwd_kernels(self) -> list[FwdKernel]:
        """In the order of the rows, one for each kind of element, and those that split beside."""
        return [
            FwdKernel(tile=tile, element=element, split=split)
            for tile in self.fwd
            for split in ((False, True) if tile.split else (False,))
            for element in tile.elements
        ]

    def bwd_kernels(self) -> list[BwdKernel]:
        """In the order of the rows, one for each kind of element."""
        return [BwdKernel(tile=tile, element=element) for tile in self.bwd for element in tile.elements]

    def decode_kernels(self) -> list[DecodeKernel]:
        """In the order of the rows, one for each of their kinds of element."""
        return [DecodeKernel(tile=tile, element=element) for tile in self.decode for element in tile.elements]

    def card_facts(self) -> list[dict[str, object]]:
        """One flat table for each card: what the simulator reads."""
        return [{**self.timing, **card.model_dump(exclude={"timing"}), **card.timing} for card in self.card]


def load_config(archs: tuple[str, ...]) -> TileConfig:
    """Reads the tiles for these archs.

    An arch without a file of its own uses the tiles of gfx906: they need 256 VGPRs and 64 KiB of LDS at
    most, which gfx900, gfx908 and gfx90a have too. The dispatch table holds one list of tiles for all archs
    of a build, so the files of a build must agree in their rows.

    Raises:
        BuildError: a file is missing, is no TOML, breaks the schema, or disagrees with another.
    """
    files = dict.fromkeys(_config_file(arch) for arch in archs)
    configs = {file: _load_file(file) for file in files}
    first, *others = configs
    for other in others:
        if any(
            getattr(configs[other], kind) != getattr(configs[first], kind)
            for kind in ("fwd", "bwd", "decode")
        ):
            raise BuildError(
                f"{_short(first)} and {_short(other)} list different tiles, and one build has one list: "
                "build them apart with PYTORCH_ROCM_ARCH."
            )
    return configs[first]


def config_files(archs: tuple[str, ...]) -> list[Path]:
    """The files that load_config reads."""
    return list(dict.fromkeys(_config_file(arch) for arch in archs))


def _config_file(arch: str) -> Path:
    own = CONFIGS / f"{arch}.toml"
    return own if own.is_file() else CONFIGS / f"{_BASE_ARCH}.toml"


def _load_file(file: Path) -> TileConfig:
    try:
        config = TileConfig.model_validate(tomllib.loads(file.read_text()))
    except OSError as error:
        raise BuildError(f"{_short(file)} cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise BuildError(f"{_short(file)} is no valid TOML: {error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        value = "" if first["type"] == "missing" else f"={first['input']!r}"
        raise BuildError(f"{_short(file)}: {where}{value}: {first['msg']}.") from error
    names = [tile.name for tile in config.fwd]
    names += [tile.name for tile in config.bwd]
    names += [tile.name for tile in config.decode]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BuildError(f"{_short(file)} has two rows for {twice[0]}; remove one of them.")
    return config


def _short(file: Path) -> Path:
    return file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
