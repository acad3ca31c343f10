"""What was measured on this machine, and how it changes the choice of kernels."""
