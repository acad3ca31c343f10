"""One case on one implementation."""

import torch

from flashattn_rocm.benchmarks.device import Device
from flashattn_rocm.benchmarks.implementations import Implementation, make_inputs
from flashattn_rocm.benchmarks.result import Row, make_row
from flashattn_rocm.benchmarks.shapes import Case


def run_case(device: Device, implementation: Implementation, case: Case) -> Row | str:
    """Measures it.

    Returns:
        The row; or why there is none, as a part of a sentence.
    """
    shape = case.shape
    reason = implementation.unavailable(device, shape.head_dim)
    if reason is not None:
        return reason
    try:
        inputs = make_inputs(shape, device.torch_device)
        rows = []
        for variant in implementation.variants(shape.head_dim):
            with variant.prepared(inputs, shape.causal) as forward:
                measured = device.measure(forward)
            tile = variant.tile(measured.kernel, shape.head_dim)
            rows.append(make_row(case, variant.name, device.backend, tile, measured))
    except torch.OutOfMemoryError:
        return f"out of memory at {shape.seqlen_q} queries and {shape.seqlen_k} keys"
    return min(rows, key=lambda row: row.result.ms)
