"""Modules that hold the functions: copies, pickles, hooks, vmap."""

import copy
import functools
import io
import pickle

import pytest
import torch

import flashattn_rocm
from flashattn_rocm import flash_attn_func
from tests.kit.cases import randn
from tests.kit.device import DEVICE


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(64, 192, dtype=torch.float16, device=DEVICE).requires_grad_(False)
        self.attend = functools.partial(flash_attn_func, causal=True, window_size=(7, 0))
        self.op = torch.ops.flashattn_rocm.fwd

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = self.project(x).unflatten(-1, (3, 2, 32)).unbind(2)
        return self.attend(q, k, v), self.op(q, k, v)[0]


def through_torch_save(module: torch.nn.Module) -> torch.nn.Module:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def through_pickle(module: torch.nn.Module) -> torch.nn.Module:
    return pickle.loads(pickle.dumps(module))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, through_pickle, through_torch_save])
def test_a_copy_of_a_module_computes_the_same(duplicate):
    module = Attention()
    x = randn(2, 20, 64, seed=1)
    want = module(x)
    if duplicate is not copy.deepcopy:
        del module.op  # torch's ops have no pickle
        twin = duplicate(module)
        assert twin.attend(*[x.view(2, 20, 2, 32)] * 3).equal(module.attend(*[x.view(2, 20, 2, 32)] * 3))
        twin.op = torch.ops.flashattn_rocm.fwd
    else:
        twin = duplicate(module)
    assert all(one.equal(other) for one, other in zip(twin(x), want, strict=True))


@pytest.mark.parametrize("name", flashattn_rocm.interface.__all__)
def test_functions_are_pickled_by_name(name):
    function = getattr(flashattn_rocm, name)
    assert pickle.loads(pickle.dumps(function)) is function


def test_vmap_is_a_loop():
    q, k, v = (randn(3, 2, 12, 2, 32, seed=s) for s in range(3))
    want = torch.stack([flash_attn_func(*each) for each in zip(q, k, v, strict=True)])
    assert torch.vmap(flash_attn_func)(q, k, v).equal(want)
    shared = torch.vmap(flash_attn_func, in_dims=(0, None, None))(q, k[0], v[0])
    assert shared.equal(torch.stack([flash_attn_func(each, k[0], v[0]) for each in q]))
    twice = torch.vmap(torch.vmap(flash_attn_func))(*(x.unsqueeze(2) for x in (q, k, v)))
    assert twice.squeeze(2).equal(want)
    bias = randn(3, 12, 12, seed=3)
    biased = torch.vmap(lambda q, bias: flash_attn_func(q, k[0], v[0], attn_bias=bias))(q, bias)
    assert biased[2].equal(flash_attn_func(q[2], k[0], v[0], attn_bias=bias[2]))


def test_vmap_with_dropout_asks_what_randomness_means():
    q, k, v = (randn(3, 1, 12, 2, 32, seed=s) for s in range(3))
    attend = functools.partial(flash_attn_func, dropout_p=0.5)
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(attend)(q, k, v)
    alike = [x[:1].expand_as(x) for x in (q, k, v)]
    same = torch.vmap(attend, randomness="same")(*alike)
    different = torch.vmap(attend, randomness="different")(*alike)
    assert same[0].equal(same[1])
    assert not different[0].equal(different[1])
