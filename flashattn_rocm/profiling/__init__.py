"""Profiles of launches on the simulated card: reading them, reports, plots, and the ``profile`` command."""
