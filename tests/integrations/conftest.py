"""What tests of several libraries share."""

from collections.abc import Iterator

import pytest

import flashattn_rocm
from tests.kit.shim import installed_shim

__all__ = ["installed_shim"]


@pytest.fixture(autouse=True)
def torchs_own_attention_afterwards() -> Iterator[None]:
    yield
    flashattn_rocm.disable_sdpa()
