"""Every test here ends with torch's own attention."""

from collections.abc import Iterator

import pytest

import flashattn_rocm


@pytest.fixture(autouse=True)
def torchs_own_attention_afterwards() -> Iterator[None]:
    yield
    flashattn_rocm.disable_sdpa()
