"""Attention backend for vLLM, as an out-of-tree plugin.

vLLM calls :func:`register` in each of its processes, through the entry point ``vllm.general_plugins`` of this
package. Then

    vllm serve MODEL --attention-backend CUSTOM

serves prefill, chunked prefill and decoding, mixed in one batch, by the kernels for paged caches. It is
written for vLLM's V1 interface (``vllm.v1.attention``) of release 0.19. Caches are fp16 or bf16, or, of fp16
models, those of ``--kv-cache-dtype fp8`` (e4m3) and ``fp8_e5m2``, with a layer's scales for keys and values.
"""

from __future__ import annotations

__all__ = ["register"]

_BACKEND = "flashattn_rocm.integrations.vllm_backend.FlashAttnRocmBackend"


def register() -> None:
    """Registers the backend as CUSTOM; calling it again changes nothing.

    Raises:
        ImportError: vLLM is not installed, or older than 0.19.
    """
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    register_backend(AttentionBackendEnum.CUSTOM, _BACKEND)
