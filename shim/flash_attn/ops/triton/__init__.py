"""Modules that upstream writes in Triton; here they are plain torch."""
