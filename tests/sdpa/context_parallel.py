"""Two processes that share a sequence by torch's context parallelism; run by torchrun from a test."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import _cp_options, context_parallel_unshard
from torch.nn import functional

import flashattn_rocm


def main() -> None:
    """Compares out and gradients of the whole sequence with those of one process; asserts on each rank."""
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    generator = torch.Generator().manual_seed(0)
    whole = [torch.randn(2, 2, 32, 16, generator=generator).half() for _ in range(4)]
    for is_causal in (False, True):
        _cp_options.enable_load_balance = is_causal  # torch balances causal attention alone
        leaves = [t.clone().requires_grad_() for t in whole[:3]]
        want = functional.scaled_dot_product_attention(*leaves, is_causal=is_causal)
        want_gradients = torch.autograd.grad(want, leaves, whole[3])
        q, k, v, weight = (t.clone() for t in whole)
        buffers = [q, k, v, weight]
        # The context replaces the function in its module, so it must be looked up there.
        with (
            flashattn_rocm.sdpa(fallback=False) as counts,
            context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2] * 4, no_restore_buffers=set(buffers)),
        ):
            for tensor in (q, k, v):  # now this process's share
                tensor.requires_grad_()
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
            gradients = torch.autograd.grad(out, (q, k, v), weight)
            got = context_parallel_unshard(mesh, [out, *gradients], [2] * 4)
        assert counts.served > 0, counts
        for name, one, other in zip(("out", "dq", "dk", "dv"), got, (want, *want_gradients), strict=True):
            assert (one.float() - other.float()).abs().max() < 1e-2, name
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
