"""``flashattn-rocm verify``: is attention right on this machine, from single outputs to a real model."""
