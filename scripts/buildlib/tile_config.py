"""configs/<arch>.toml: the device's facts and the tile shapes."""

import sys
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from buildlib.errors import BuildError
from buildlib.paths import CONFIGS, ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_BASE_ARCH = "gfx906"
Mask = Literal["causal", "full"]
_MASKS: tuple[Mask, ...] = ("causal", "full")


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


class FwdTile(_Strict):
    """One row [[fwd]]; it makes one kernel for each mask."""

    head_dim: Literal[32, 64, 128]
    block_m: int = Field(gt=0)
    block_n: int = Field(gt=0)
    waves: int = Field(gt=0, le=16)
    why: str = Field(min_length=1)

    @property
    def cpp(self) -> str:
        """The row as a C++ value."""
        return f"flashattn::Tile{{{self.head_dim}, {self.block_m}, {self.block_n}, {self.waves}}}"


class FwdKernel(BaseModel):
    """A kernel to build."""

    model_config = ConfigDict(frozen=True)

    tile: FwdTile
    mask: Mask

    @property
    def name(self) -> str:
        """The symbol; it states the whole configuration."""
        tile = self.tile
        return f"flashattn_fwd_f16_d{tile.head_dim}_{self.mask}_m{tile.block_m}n{tile.block_n}w{tile.waves}"

    @property
    def threads(self) -> int:
        """Threads of a workgroup: 64 a wave on every GCN card."""
        return self.tile.waves * 64


class TileConfig(_Strict):
    """One file."""

    device: Device
    lds: Lds
    fwd: tuple[FwdTile, ...] = Field(min_length=1, strict=False)
    card: tuple[Card, ...] = Field(default=(), strict=False)
    timing: dict[str, int | float] = {}

    def fwd_kernels(self) -> list[FwdKernel]:
        """In the order of the rows: dispatch takes the first that fits."""
        return [FwdKernel(tile=tile, mask=mask) for tile in self.fwd for mask in _MASKS]

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
        if configs[other].fwd_kernels() != configs[first].fwd_kernels():
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
    names = [kernel.name for kernel in config.fwd_kernels()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BuildError(f"{_short(file)} has two rows for {twice[0]}; remove one of them.")
    return config


def _short(file: Path) -> Path:
    return file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
