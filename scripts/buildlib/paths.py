"""Where the build reads and writes, relative to the repository's root."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CSRC = ROOT / "csrc"
CONFIGS = ROOT / "configs"
BUILD = ROOT / "build"
GENERATED = BUILD / "generated"
PACKAGE = ROOT / "flashattn_rocm"
