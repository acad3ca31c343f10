"""The probe of a HIP runtime, on the simulated card's."""

import shutil
from pathlib import Path

import pytest

from flashattn_rocm_doctor.child import run_probe
from flashattn_rocm_doctor.installation import find_package


@pytest.fixture
def package():
    found = find_package()
    if not found.simulator.exists():
        pytest.skip("this build has no simulator")
    return found


def device(bundles, package):
    probe = run_probe("hip_probe", *map(str, bundles), str(package.simulator), timeout=120)
    assert probe.ending == ""
    assert probe.first("library")["path"].endswith("lib/sim/libamdhip64.so")
    return probe.first("device")


def test_every_bundle_is_loaded(package):
    assert [bundle.name for bundle in package.bundles] == ["kernels.hipfb", "decode.hipfb"]
    assert device(package.bundles, package)["load_error"] == ""
    assert device([], package)["load_error"] == ""


@pytest.mark.parametrize("spoiled", [0, 1])
def test_the_bundle_that_is_refused_is_named(package, tmp_path, spoiled):
    copies = [Path(shutil.copy(bundle, tmp_path)) for bundle in package.bundles]
    copies[spoiled].write_bytes(b"no code object")
    assert device(copies, package)["load_error"].startswith(f"{package.bundles[spoiled].name}: hipError")
