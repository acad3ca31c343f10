"""Layers that model code imports from flash-attn."""
