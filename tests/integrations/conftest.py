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


@pytest.fixture
def flash_attention_2(installed_shim: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """transformers asks for a card before it looks for flash-attn; the simulated one is none to torch."""
    from transformers import modeling_flash_attention_utils as flash_utils
    from transformers.utils import import_utils

    caches = [
        import_utils.is_flash_attn_2_available,
        import_utils._package_distribution_mapping,
        import_utils._is_package_available,
    ]

    def forget() -> None:
        for function in caches:
            getattr(function, "cache_clear", lambda: None)()
        for name in ("_flash_fn", "_flash_varlen_fn", "_loaded_implementation"):
            if hasattr(flash_utils, name):
                monkeypatch.setattr(flash_utils, name, None)

    monkeypatch.setattr(import_utils, "is_torch_cuda_available", lambda: True)
    monkeypatch.setitem(
        flash_utils.FLASH_ATTENTION_COMPATIBILITY_MATRIX[2], "supported_devices", [(lambda: True, "cuda")]
    )
    forget()
    assert import_utils.is_flash_attn_2_available()
    yield
    forget()
