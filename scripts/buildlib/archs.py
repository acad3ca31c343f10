"""Which GPU architectures a build is for."""

import re
import sys
from collections.abc import Mapping

from buildlib.errors import BuildError

# GCN with v_dot2_f32_f16 or a short substitute for it (gfx900), 64 lanes a wave, 64 KiB of LDS a workgroup.
SUPPORTED = ("gfx900", "gfx906", "gfx908", "gfx90a")
# What a build without PYTORCH_ROCM_ARCH is for: gfx90a has matrix cores, and libraries that use them.
DEFAULT = ("gfx900", "gfx906", "gfx908")


def target_archs(env: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the archs of PYTORCH_ROCM_ARCH, or DEFAULT if it is unset.

    Feature suffixes are dropped (`gfx906:sramecc+:xnack-` is `gfx906`): a code object without them loads
    with any setting of the card. Archs that the kernels do not support are named on stderr and left out,
    since ROCm images preset the variable to every card that torch supports.

    Raises:
        BuildError: no supported arch is left.
    """
    asked = [name for name in re.split(r"[;,\s]+", env.get("PYTORCH_ROCM_ARCH", "")) if name]
    if not asked:
        return DEFAULT
    names = list(dict.fromkeys(name.split(":")[0] for name in asked))
    unsupported = [name for name in names if name not in SUPPORTED]
    kept = tuple(name for name in names if name in SUPPORTED)
    text = f"PYTORCH_ROCM_ARCH={env['PYTORCH_ROCM_ARCH']!r}"
    if not kept:
        raise BuildError(
            f"{text} names no architecture that has kernels; supported are {', '.join(SUPPORTED)}, "
            "and an MI50, MI60 or Radeon VII needs PYTORCH_ROCM_ARCH=gfx906."
        )
    if unsupported:
        print(
            f"{text}: no kernels for {', '.join(unsupported)}; building {', '.join(kept)}.", file=sys.stderr
        )
    return kept
