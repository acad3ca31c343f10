"""Adapters that put the attention kernels behind other libraries' attention interfaces.

Importing this package imports none of those libraries; each adapter imports its own.
"""
