"""Rotary position embedding, under the name that vLLM imports."""

from flashattn_rocm.rotary import apply_rotary

__all__ = ["apply_rotary"]
