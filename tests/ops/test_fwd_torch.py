"""The op inside torch: fake tensors, opcheck, torch.compile, vmap, threads."""

import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from flashattn_rocm import flash_attn_func
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE

fwd = torch.ops.flashattn_rocm.fwd


def layouts() -> dict[str, tuple[torch.Tensor, ...]]:
    """Inputs by what is particular about their strides or sizes."""
    transposed = [randn(2, 4, 9, 64, seed=s).transpose(1, 2) for s in range(3)]
    packed = randn(2, 9, 3, 4, 64, seed=3).unbind(2)
    broadcast = [randn(1, 9, 1, 64, seed=s).expand(2, 9, 4, 64) for s in range(3)]
    return {
        "contiguous": tuple(make_qkv(2, 9, 9, 4)),
        "transposed": tuple(transposed),
        "packed": packed,
        "broadcast": tuple(broadcast),
        "grouped": tuple(make_qkv(2, 9, 20, 4, 2)),
        "empty": tuple(make_qkv(2, 0, 20, 4, 2)),
    }


@pytest.mark.parametrize("layout", list(layouts()))
def test_fake_result_is_that_of_the_real_one(layout):
    inputs = layouts()[layout]
    real = fwd(*inputs)
    with FakeTensorMode() as mode:
        fake = fwd(*(mode.from_tensor(tensor) for tensor in inputs))
    meta = fwd(*(tensor.to("meta") for tensor in inputs)) if layout == "contiguous" else real
    for want, *others in zip(real, fake, meta, strict=True):
        for other in others:
            assert (other.shape, other.dtype, other.stride()) == (want.shape, want.dtype, want.stride())
    assert real[0].stride(-1) == 1
    assert real[1].is_contiguous()


def test_result_of_overlapping_rows_is_contiguous_in_the_last_dimension():
    q = randn(1000, seed=4).as_strided((2, 9, 4, 64), (1, 1, 1, 1))
    out, _ = fwd(q, q, q)
    assert out.stride(-1) == 1
    assert out.equal(fwd(*[q.contiguous()] * 3)[0])


@pytest.mark.parametrize("layout", list(layouts()))
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
def test_opcheck(layout, causal):
    torch.library.opcheck(fwd.default, layouts()[layout], {"softmax_scale": 0.2, "causal": causal})


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_compile_without_graph_break(dynamic):
    torch._dynamo.reset()

    def attend(q, k, v):
        return flash_attn_func(q * 2, k, v, causal=True) + 1

    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for seqlen in (9, 20, 33):
        qkv = make_qkv(2, seqlen, seqlen + 3, 4, 2)
        assert compiled(*qkv).equal(attend(*qkv))


def test_export():
    class Attention(torch.nn.Module):
        def forward(self, q, k, v):
            return flash_attn_func(q, k, v, causal=True)

    qkv = make_qkv()
    exported = torch.export.export(Attention(), tuple(qkv))
    assert exported.module()(*qkv).equal(Attention()(*qkv))


def test_vmap_equals_the_loop_or_raises():
    q, k, v = (randn(3, 1, 12, 2, 32, seed=s) for s in range(3))
    try:
        batched = torch.vmap(flash_attn_func)(q, k, v)
    except RuntimeError:
        return
    assert batched.equal(torch.stack([flash_attn_func(*each) for each in zip(q, k, v, strict=True)]))


def test_threads_that_share_tensors():
    q, k, v = make_qkv(1, 70, 70, 2, seed=70)
    want = [flash_attn_func(q[:, i:], k, v) for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: flash_attn_func(q[:, i % 8 :], k, v), range(32)))
    assert all(each.equal(want[i % 8]) for i, each in enumerate(got))


@pytest.mark.skipif(DEVICE.type != "cpu", reason="a launch on a card does not block")
def test_other_python_threads_run_during_a_call():
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    qkv = make_qkv(1, 700, 700, 4, seed=71)
    ticker = threading.Thread(target=tick)
    ticker.start()
    start = time.monotonic()
    flash_attn_func(*qkv)
    end = time.monotonic()
    done.set()
    ticker.join()
    assert sum(start < tick < end for tick in ticks) > 5


def test_nothing_is_kept_alive():
    q, k, v = make_qkv()
    out = flash_attn_func(q, k, v)
    references = [weakref.ref(tensor) for tensor in (q, out)]
    del q, out
    assert all(reference() is None for reference in references)
