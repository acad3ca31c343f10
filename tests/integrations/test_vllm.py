"""The vLLM plugin, driven as vLLM drives a backend, against float64."""

import importlib
import importlib.metadata
import importlib.util
import math
import random
import sys
from types import SimpleNamespace

import pytest
import torch

from tests.kit.attention import attention
from tests.kit.cases import randn
from tests.kit.vllm_interface import AttentionType, stand_in

_PAGE = 16
_BLOCKS = 40
_OF_BYTES = {
    "fp8": torch.float8_e4m3fn,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
}


@pytest.fixture
def plugin(monkeypatch):
    """The backend's module, on vLLM itself where it is installed."""
    name = "flashattn_rocm.integrations.vllm_backend"
    if importlib.util.find_spec("vllm") is None:
        stand_in(monkeypatch)
        monkeypatch.delitem(sys.modules, name, raising=False)
        yield importlib.import_module(name)
        sys.modules.pop(name, None)  # made of the stand-ins
    else:
        yield importlib.import_module(name)


class Server:
    """Some sequences, their pages in a shuffled cache, and what a step of a model does with them."""

    def __init__(self, plugin, heads=4, heads_kv=2, head_dim=64, side_by_side=False, **options) -> None:
        self._impl = plugin.FlashAttnRocmImpl(heads, head_dim, head_dim**-0.5, heads_kv, **options)
        self._builder = plugin.FlashAttnRocmMetadataBuilder(None, ["layer"], None, torch.device("cpu"))
        shape = plugin.FlashAttnRocmBackend.get_kv_cache_shape(_BLOCKS, _PAGE, heads_kv, head_dim)
        if side_by_side:  # of newer releases: K and V of a head beside each other
            shape = (_BLOCKS, heads_kv, _PAGE, 2 * head_dim)
        self._of_bytes = _OF_BYTES.get(options.get("kv_cache_dtype", "auto"))
        if self._of_bytes:
            self._cache = torch.full(shape, 0x7F, dtype=torch.uint8)  # NaN in both formats
        else:
            self._cache = torch.full(shape, math.nan, dtype=torch.float16)
        # The largest numbers lie beyond what the keys' scale gives e4m3.
        self._layer = SimpleNamespace(_k_scale=torch.tensor(0.005), _v_scale=torch.tensor(0.02))
        self._free = random.Random(1).sample(range(_BLOCKS), _BLOCKS)
        self._pages: dict[int, list[int]] = {}
        self._seen: dict[int, list[torch.Tensor]] = {}
        self._shape = heads, heads_kv, head_dim

    def step(self, new_tokens, seed, padding=0):
        """Attention of new tokens by sequence: what the plugin gives and what is right."""
        heads, heads_kv, head_dim = self._shape
        total = sum(new_tokens.values())
        q, k, v = (
            randn(total + padding, n, head_dim, seed=seed + i)
            for i, n in enumerate((heads, heads_kv, heads_kv))
        )
        slots, first, want = [], 0, []
        for sequence, count in new_tokens.items():
            rows = slice(first, first + count)
            slots += [self._slot(sequence, token) for token in zip(k[rows], v[rows], strict=True)]
            want.append(self._right(q[rows], sequence))
            first += count
        slot_mapping = torch.tensor(slots + [-1] * padding)
        self._impl.do_kv_cache_update(self._layer, k, v, self._cache, slot_mapping)
        output = torch.full_like(q, math.nan)
        metadata = self._builder.build(0, self._common(new_tokens, slot_mapping))
        got = self._impl.forward(self._layer, q, k, v, self._cache, metadata, output)
        assert got is output
        return got[:total], torch.cat(want)

    def _slot(self, sequence, token):
        seen = self._seen.setdefault(sequence, [])
        pages = self._pages.setdefault(sequence, [])
        if len(seen) % _PAGE == 0:
            pages.append(self._free.pop())
        seen.append(token)
        return pages[-1] * _PAGE + (len(seen) - 1) % _PAGE

    def _right(self, q, sequence):
        scales = self._layer._k_scale, self._layer._v_scale
        rows = zip(zip(*self._seen[sequence], strict=True), scales, strict=True)
        k, v = (self._held(torch.stack(x)[None], scale) for x, scale in rows)
        left, right = self._impl.window_size
        options = {"window_left": left, "window_right": right}
        if self._impl.logits_soft_cap:
            options["softcap"] = self._impl.logits_soft_cap
        for name, value in (("alibi_slopes", self._impl.alibi_slopes), ("sinks", self._impl.sinks)):
            if value is not None:
                options[name] = value
        return attention(q[None], k, v, causal=True, **options).out[0]

    def _held(self, x, scale):
        """What the cache makes of keys or values."""
        if self._of_bytes is None:
            return x.double()
        most = torch.finfo(self._of_bytes).max
        return (x.float() / scale).clamp(-most, most).to(self._of_bytes).double() * scale.double()

    def _common(self, new_tokens, slot_mapping):
        counts = torch.tensor([0, *new_tokens.values()], dtype=torch.int32)
        longest = max(len(pages) for pages in self._pages.values())
        junk = 10**6  # of pages that a sequence does not have
        table = [self._pages[s] + [junk] * (longest - len(self._pages[s])) for s in new_tokens]
        lengths = [len(self._seen[s]) for s in new_tokens]
        return SimpleNamespace(
            query_start_loc=counts.cumsum(0, dtype=torch.int32),
            seq_lens=torch.tensor(lengths, dtype=torch.int32),
            num_actual_tokens=int(counts.sum()),
            max_query_len=int(counts.max()),
            max_seq_len=max(lengths),
            block_table_tensor=torch.tensor(table, dtype=torch.int32),
            slot_mapping=slot_mapping,
            causal=True,
        )


@pytest.mark.parametrize("side_by_side", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"heads": 6, "heads_kv": 2, "head_dim": 128, "sliding_window": 9},
        {"logits_soft_cap": 20.0, "alibi_slopes": [0.5, 0.25, 0.125, 0.0625]},
        {"sinks": torch.tensor([0.5, -1.0, 2.0, 0.0], dtype=torch.float16)},
    ],
    ids=["plain", "window", "softcap-alibi", "sinks"],
)
def test_prompts_chunks_and_tokens_in_one_batch(plugin, options, side_by_side):
    server = Server(plugin, side_by_side=side_by_side, **options)
    steps = [{0: 37}, {0: 1, 1: 20}, {0: 1, 1: 13, 2: 5}, {2: 1, 0: 1, 1: 1}]
    for seed, new_tokens in enumerate(steps):
        got, want = server.step(new_tokens, seed=10 * seed, padding=seed % 2 * 3)
        assert (got.double() - want).abs().max() < 2e-3


@pytest.mark.parametrize("side_by_side", [False, True])
@pytest.mark.parametrize("kv_cache_dtype", _OF_BYTES)
@pytest.mark.parametrize("head_dim", [64, 128])
def test_caches_of_bytes_have_the_layers_scales(plugin, kv_cache_dtype, head_dim, side_by_side):
    server = Server(plugin, head_dim=head_dim, side_by_side=side_by_side, kv_cache_dtype=kv_cache_dtype)
    for seed, new_tokens in enumerate([{0: 37}, {0: 1, 1: 20}, {1: 3, 0: 1}]):
        got, want = server.step(new_tokens, seed=10 * seed, padding=seed % 2 * 3)
        assert (got.double() - want).abs().max() < 4e-3


@pytest.mark.parametrize("sliding_window", [None, 5])
def test_an_encoder_sees_both_sides(plugin, sliding_window):
    impl = plugin.FlashAttnRocmImpl(
        4, 64, 0.125, 4, sliding_window=sliding_window, attn_type=AttentionType.ENCODER_ONLY
    )
    q, k, v = (randn(30, 4, 64, seed=seed) for seed in range(3))
    bounds = torch.tensor([0, 11, 28], dtype=torch.int32)
    metadata = plugin.FlashAttnRocmMetadata(28, 17, bounds, bounds.diff(), torch.empty(2, 0), False)
    impl.do_kv_cache_update(None, k, v, torch.empty(0), torch.tensor([0]))
    output = impl.forward(None, q, k, v, torch.empty(0), metadata, torch.zeros_like(q))
    window = {} if sliding_window is None else {"window_left": 4, "window_right": 4}
    for first, last in ((0, 11), (11, 28)):
        parts = (x[None, first:last].double() for x in (q, k, v))
        want = attention(*parts, softmax_scale=0.125, **window).out[0]
        assert (output[first:last].double() - want).abs().max() < 2e-3
    assert not output[28:].any()


def test_the_profiling_run_gives_zeros(plugin):
    impl = plugin.FlashAttnRocmImpl(4, 64, 0.125, 4)
    q = randn(3, 4, 64, seed=1)
    assert not impl.forward(None, q, q, q, torch.empty(0), None, torch.ones_like(q)).any()


def test_what_is_not_served_is_refused(plugin):
    with pytest.raises(NotImplementedError, match="kv_cache_dtype='fp8_inc' must be one of auto, float16"):
        plugin.FlashAttnRocmImpl(4, 64, 0.125, kv_cache_dtype="fp8_inc")
    for head_size in (60, 264):
        with pytest.raises(NotImplementedError, match=f"multiple of 8 and at most 256; it is {head_size}"):
            plugin.FlashAttnRocmImpl(4, head_size, 0.125, kv_cache_dtype="fp8")
    with pytest.raises(NotImplementedError, match="attn_type='encoder_decoder'"):
        plugin.FlashAttnRocmImpl(4, 64, 0.125, attn_type="encoder_decoder")
    impl, q = plugin.FlashAttnRocmImpl(4, 64, 0.125), randn(3, 4, 64, seed=1)
    with pytest.raises(ValueError, match="output is None"):
        impl.forward(None, q, q, q, torch.empty(0), None)
    with pytest.raises(NotImplementedError, match="not quantised"):
        impl.forward(None, q, q, q, torch.empty(0), None, q.clone(), torch.ones(1))
    with pytest.raises(ValueError, match="multiple of 16; got 24"):
        plugin.FlashAttnRocmBackend.get_kv_cache_shape(1, 24, 1, 64)


def test_the_backend_says_what_it_serves(plugin):
    backend = plugin.FlashAttnRocmBackend
    assert [backend.supports_head_size(n) for n in (0, 80, 512, 513)] == [False, True, True, False]
    assert backend.supports_attn_type("decoder")
    assert not backend.supports_attn_type("encoder_decoder")
    assert backend.get_kv_cache_shape(7, 48, 2, 64) == (7, 2, 48, 2, 64)
    tail = {"block_size": 16, "use_mla": False, "has_sink": True, "use_sparse": False}  # and more by release
    assert backend.supports_combination(60, torch.bfloat16, "auto", **tail) is None
    assert backend.supports_combination(128, torch.float16, "fp8", **tail) is None
    assert "needs a float16 model" in backend.supports_combination(128, torch.bfloat16, "fp8", **tail)
    assert "it is 60" in backend.supports_combination(60, torch.float16, "fp8_e5m2", **tail)


def test_vllm_finds_the_plugin(monkeypatch):
    registry = stand_in(monkeypatch)
    (entry,) = importlib.metadata.entry_points(group="vllm.general_plugins", name="flashattn_rocm")
    register = entry.load()
    register()
    register()
    (path,) = registry.paths.values()
    module, _, name = path.rpartition(".")
    assert hasattr(importlib.import_module(module), name)
    sys.modules.pop(module, None)
