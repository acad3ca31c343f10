"""``flashattn-rocm doctor``: what stops attention from running on this machine, and what to do about it.

A package of its own, so that it works where ``import flashattn_rocm`` does not: without torch, or with an
extension that cannot be loaded. It imports the standard library and rich; whatever may crash or hang runs in
another process.
"""
