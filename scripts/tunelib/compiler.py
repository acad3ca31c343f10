"""A code object for each tile, kept between runs."""

from dataclasses import dataclass
from pathlib import Path

from buildlib.code_object import KernelResources, workgroups_per_cu
from buildlib.errors import BuildError
from buildlib.generate import write_instances
from buildlib.kernels import compile_command, compile_kernels, hash_device_inputs
from buildlib.stamp import write_if_changed
from buildlib.tile_config import Element, TileKernel, TileShape, kernel_of


def tuned_kernel(tile: TileShape) -> TileKernel:
    """The one whose clocks count: bf16 is converted while it is staged, its steps take the clocks of fp16."""
    return kernel_of(tile, tile.elements[0])


@dataclass(frozen=True)
class Compiled:
    """A kernel's code object and what it takes."""

    kernel: TileKernel
    file: Path
    resources: KernelResources
    workgroups_per_cu: int

    @property
    def spills(self) -> int:
        """Registers that went to scratch, which no shipped kernel may have."""
        return self.resources.vgpr_spills + self.resources.sgpr_spills


class TileCompiler:
    """Compiles tiles for one arch into a folder a tile."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def compile(self, tile: TileShape, arch: str, element: Element | None = None) -> Compiled:
        """Compiles a tile, by default for the element that is tuned, unless the cache has it.

        Raises:
            BuildError: the compiler refuses it; the text is its first error.
        """
        return self.compile_kernel(kernel_of(tile, element) if element else tuned_kernel(tile), arch)

    def compile_kernel(self, kernel: TileKernel, arch: str) -> Compiled:
        """See compile."""
        folder = self._cache / arch / kernel.name
        source = write_instances(folder, [kernel])
        words: list[str] = []
        try:
            built = compile_kernels(arch, source, folder, words.append)
        except BuildError as error:
            lines = "\n".join(words).splitlines()
            raise BuildError(next((line for line in lines if "error:" in line), str(error))) from error
        found = built.resources[kernel.name]
        return Compiled(kernel, built.file, found, workgroups_per_cu(arch, kernel.tile, found))

    def inputs(self, arch: str, name: str) -> str:
        """A hash of all that csrc/kernels/<name>.h includes, the compiler and its options."""
        source = self._cache / f"{name}.hip"
        write_if_changed(source, f'#include "kernels/{name}.h"\n')
        return hash_device_inputs(compile_command(arch, source))
