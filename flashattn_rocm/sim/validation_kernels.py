"""Compiles the kernels that published figures are held against."""

import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY / "csrc" / "sim" / "validation"
MICROBENCHMARKS = FOLDER / "microbenchmarks.hip"
KERNEL_FILES = (MICROBENCHMARKS, FOLDER / "attention_tile.hip", FOLDER / "gemm_tile.hip")

BUFFER_BYTES = 64 << 20  # the largest footprint: a KV cache of 32 heads x 128 x 4096 floats


def compile_kernels(source: Path = MICROBENCHMARKS) -> bytes:
    """The gfx906 code object of a file of csrc/sim/validation.

    Raises:
        FileNotFoundError: this is not a source tree, so there is nothing to compile.
        RuntimeError: no compiler was found, or it failed; the text says why.
    """
    if not source.is_file():
        raise FileNotFoundError(f"{source} is not there: validation needs the source tree")
    scripts = str(REPOSITORY / "scripts")
    if scripts not in sys.path:
        sys.path.append(scripts)
    from buildlib.errors import BuildError
    from buildlib.toolchain import find_device_compiler, find_device_libs, find_linker, hip_include_flags

    try:
        compiler = find_device_compiler()
        find_linker(compiler)
        flags = [f"--rocm-device-lib-path={find_device_libs(compiler)}", *hip_include_flags()]
    except BuildError as error:
        raise RuntimeError(str(error)) from error
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "kernels.co"
        command = [
            compiler.path,
            *("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "--offload-arch=gfx906"),
            *("-O3", "-std=c++20", "-ffp-contract=off", "-mcode-object-version=5", *flags),
            # As our own kernels: no access is wider than its alignment.
            *("-Xclang", "-target-feature", "-Xclang", "-unaligned-access-mode"),
            *("-o", str(output), str(source)),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{source.name} does not compile:\n{done.stderr}")
        return output.read_bytes()
