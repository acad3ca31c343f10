"""What a build says on a machine that lacks something: one sentence with the package to install."""

from pathlib import Path

import pytest

from buildlib import toolchain
from buildlib.errors import BuildError
from buildlib.system_packages import how_to_install, package_for

_LLVM_19 = ("clang-19", "lld-19", "llvm-19-dev")
_DEBIAN_12 = (*_LLVM_19, "rocm-device-libs", "libamdhip64-dev", "cmake", "g++")
_DEBIAN_13 = (*_LLVM_19, "clang-17", "lld-17", "llvm-17-dev", "rocm-device-libs-17", "libamdhip64-dev")
_UBUNTU_24_04 = ("clang-18", "lld-18", "llvm-18-dev", "clang-17", "rocm-device-libs-17", "libamdhip64-dev")
_UBUNTU_22_04 = ("clang-15", "lld-15", "llvm-15-dev", "rocm-device-libs", "cmake", "g++")


def test_missing_compiler(machine, apt_offers):
    apt_offers(_DEBIAN_12)
    with pytest.raises(
        BuildError, match=r"clang 16 or newer .* install it with `sudo apt-get install clang-19`"
    ):
        toolchain.find_device_compiler()


def test_too_old_compiler_names_its_version(add_clang, apt_offers):
    apt_offers(_DEBIAN_12)
    add_clang("clang++", version="14.0.6")
    with pytest.raises(BuildError, match=r"clang\+\+ is clang version 14\.0\.6.*clang-19"):
        toolchain.find_device_compiler()


def test_compiler_without_amdgpu(add_clang, apt_offers):
    apt_offers(_DEBIAN_12)
    add_clang("clang++-19", targets="x86-64")
    with pytest.raises(BuildError, match="has no AMDGPU target"):
        toolchain.find_device_compiler()


def test_an_old_clang_does_not_hide_a_good_one(add_clang):
    add_clang("clang++", version="14.0.6")
    good = add_clang("clang++-18", version="18.1.8")
    assert toolchain.find_device_compiler() == toolchain.DeviceCompiler(str(good), 18, "clang version 18.1.8")


@pytest.mark.parametrize(
    ("version", "flags", "spills"), [(16, True, True), (17, False, True), (18, False, False)]
)
def test_what_older_compilers_need(version, flags, spills):
    compiler = toolchain.DeviceCompiler("clang", version, "")
    assert bool(toolchain.flags_for_older_compilers(compiler)) == flags
    assert toolchain.is_older(compiler) == spills


def test_the_simulator_takes_no_llvm_16(add_clang, apt_offers):
    apt_offers(_DEBIAN_12)
    add_clang("clang++", version="16.0.6")
    assert toolchain.find_device_compiler().llvm_version == 16
    assert toolchain._if_packaged(16) is None
    assert toolchain._if_packaged(17) == 17


def test_rocm_comes_before_path(machine, add_clang):
    add_clang("clang++-19")
    (machine / "rocm/llvm/bin").mkdir(parents=True)
    assert toolchain.find_device_compiler().path == str(machine / "clang++-19")
    toolchain.find_device_compiler.cache_clear()
    rocm = add_clang("rocm/llvm/bin/clang++", version="20.0.0git")
    assert toolchain.find_device_compiler().path == str(rocm)


@pytest.mark.parametrize("variable", ["HIPCC", "CLANG"])
def test_override_that_does_not_exist(machine, add_clang, monkeypatch, variable):
    add_clang("clang++-19")
    monkeypatch.setenv(variable, "/nowhere/clang")
    with pytest.raises(BuildError, match=f"{variable}=/nowhere/clang was not found"):
        toolchain.find_device_compiler()


def test_missing_linker(add_clang, apt_offers):
    apt_offers(_DEBIAN_12)
    add_clang("clang++-19")
    with pytest.raises(BuildError, match=r"no lld to link GPU code with: .* lld-19`"):
        toolchain.find_linker(toolchain.find_device_compiler())


@pytest.mark.parametrize(
    ("offered", "package"), [(_DEBIAN_12, "rocm-device-libs"), (_DEBIAN_13, "rocm-device-libs-17")]
)
def test_missing_device_libs(add_clang, apt_offers, monkeypatch, offered, package):
    apt_offers(offered)
    add_clang("clang++-19")
    monkeypatch.setattr(toolchain, "_device_lib_candidates", lambda compiler: iter([Path("/nowhere")]))
    with pytest.raises(BuildError, match=rf"device libraries .* install {package}`"):
        toolchain.find_device_libs(toolchain.find_device_compiler())


def test_device_libs_older_than_the_code_object_version(add_clang, tmp_path, monkeypatch):
    add_clang("clang++-19")
    (tmp_path / "ocml.bc").touch()
    monkeypatch.setattr(toolchain, "_device_lib_candidates", lambda compiler: iter([tmp_path]))
    with pytest.raises(BuildError, match=r"older than ROCm 5\.2"):
        toolchain.find_device_libs(toolchain.find_device_compiler())
    (tmp_path / "oclc_abi_version_500.bc").touch()
    assert toolchain.find_device_libs(toolchain.find_device_compiler()) == tmp_path


def test_missing_hip_headers(machine, apt_offers, monkeypatch):
    apt_offers(_DEBIAN_12)
    monkeypatch.setattr(toolchain, "_HIP_HEADER", "hip/not_there.h")
    with pytest.raises(BuildError, match="libamdhip64-dev"):
        toolchain.hip_include_flags()


def test_missing_host_tools(machine, apt_offers, monkeypatch):
    apt_offers(_DEBIAN_12)
    with pytest.raises(BuildError, match=r"No C\+\+ compiler was found: .* g\+\+`"):
        toolchain.find_host_compiler()
    with pytest.raises(BuildError, match="apt-get install cmake"):
        toolchain.find_cmake()
    monkeypatch.setenv("CXX", "g++-99")
    with pytest.raises(BuildError, match=r"CXX=g\+\+-99 was not found"):
        toolchain.find_host_compiler()


@pytest.mark.parametrize(
    ("offered", "compiler", "device_libs"),
    [
        (_DEBIAN_12, "clang-19", "rocm-device-libs"),
        (_DEBIAN_13, "clang-19", "rocm-device-libs-17"),
        (_UBUNTU_24_04, "clang-18", "rocm-device-libs-17"),
        (_UBUNTU_22_04, None, "rocm-device-libs"),
    ],
    ids=["debian-12", "debian-13", "ubuntu-24.04", "ubuntu-22.04"],
)
def test_packages_by_distribution(apt_offers, offered, compiler, device_libs):
    apt_offers(offered)
    assert package_for("compiler") == compiler
    assert package_for("device-libs") == device_libs


def test_distribution_without_llvm_17_says_where_to_get_it(apt_offers):
    apt_offers(_UBUNTU_22_04)
    assert "https://apt.llvm.org" in how_to_install("compiler")
