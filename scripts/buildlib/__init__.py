"""Build steps of flashattn_rocm: what setup.py, scripts/setup.sh and scripts/build_kernels.py share.

`tile_config`, `generate`, `code_object` and `kernels` import the packages that `requirements` provides; all
other modules need the standard library only, because they run before anything is installed.
"""
