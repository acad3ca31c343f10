"""``python -m flashattn_rocm_doctor``, as ``flashattn-rocm doctor``."""

import sys

from flashattn_rocm_doctor.cli import main

if __name__ == "__main__":
    sys.exit(main())
