"""Probe: imports torch and flashattn_rocm, and computes attention on every device.

python -m flashattn_rocm_doctor.launch_probe
"""

from flashattn_rocm_doctor.child import report


def main() -> None:
    """Reports the stages "torch", "package", "backend" and, for each device and dtype, "launch"."""
    import torch

    cuda = torch.version.hip is not None and torch.cuda.is_available()
    report("torch", cuda=cuda, archs=torch.cuda.get_arch_list() if cuda else [])

    import flashattn_rocm._C as _C
    from flashattn_rocm import __version__
    from flashattn_rocm.manifest import kernel_archs

    report("package", version=__version__, built_for_rocm=_C.built_for_rocm_torch)
    for backend, usable in (("hip", cuda), ("sim", True)):
        try:
            devices = list(_C.describe_backend(backend)["devices"])
        except RuntimeError as error:
            report("backend", backend=backend, devices=[], error=str(error))
            continue
        report("backend", backend=backend, devices=devices, error="")
        if usable:
            for index, device in enumerate(devices):
                if device["arch"].split(":")[0] not in kernel_archs():
                    continue  # the lines on kernels say so
                _launch(f"cuda:{index}" if backend == "hip" else "cpu")


def _launch(device: str) -> None:
    import torch

    from flashattn_rocm import flash_attn_func
    from flashattn_rocm.accuracy import measure_accuracy

    generator = torch.Generator().manual_seed(0)
    for dtype, head_dim in ((torch.float16, 64), (torch.bfloat16, 128)):
        shapes = ((1, 70, 4, head_dim), (1, 90, 2, head_dim), (1, 90, 2, head_dim))
        q, k, v = (torch.randn(shape, generator=generator).to(dtype).to(device) for shape in shapes)
        name = str(dtype).removeprefix("torch.")
        try:
            out, lse, _ = flash_attn_func(q, k, v, causal=True, return_attn_probs=True)
            accuracy = measure_accuracy(q, k, v, out, lse, causal=True)
        except (RuntimeError, ValueError) as error:
            report("launch", device=device, dtype=name, error=str(error).splitlines()[0])
            return
        report(
            "launch",
            device=device,
            dtype=name,
            error="",
            max_error=accuracy.max_error,
            violations=accuracy.violations(),
        )


if __name__ == "__main__":
    main()
