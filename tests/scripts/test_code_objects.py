"""The rules for code objects, on the package's own and on broken descriptions; and the bundle."""

import dataclasses
import json
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

import flashattn_rocm
from buildlib import kernels
from buildlib.bundle import make_bundle
from buildlib.code_object import KernelResources, check_resources, waves_per_simd, workgroups_per_cu
from buildlib.errors import BuildError
from buildlib.generate import write_instances
from buildlib.paths import CSRC
from buildlib.tile_config import load_config
from tests.kit.bundle import read_bundle

_LIB = Path(flashattn_rocm.__file__).parent / "lib"
_CONFIG = load_config(("gfx906",))
_KERNELS = _CONFIG.fwd_kernels()
# 233 registers leave one wave on a SIMD, as the first row claims.
_GOOD = KernelResources(233, 60, 0, 0, 0, 4096, _KERNELS[0].tile.threads)


def _check(resources, older_compiler=False):
    name = _KERNELS[0].name
    check_resources("gfx906", _KERNELS[:1], {name: resources}, {name: 4096}, older_compiler)


def test_good_kernel_passes():
    _check(_GOOD)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("vgpr_spills", 3, "vgpr_spill_count is 3, must be 0"),
        ("sgpr_spills", 1, "sgpr_spill_count is 1, must be 0"),
        ("scratch_bytes", 16, "private_segment_fixed_size is 16, must be 0"),
        ("lds_bytes", 4100, "group_segment_fixed_size is 4100, must be 4096"),
        ("vgprs", 128, "workgroups_per_cu is 2, must be 1"),
        ("threads", 1024, f"max_flat_workgroup_size is 1024, must be {_GOOD.threads}"),
    ],
)
def test_broken_rule_names_kernel_and_numbers(field, value, message):
    with pytest.raises(BuildError, match=f"{_KERNELS[0].name}: {message}"):
        _check(dataclasses.replace(_GOOD, **{field: value}))


@pytest.mark.parametrize(
    ("change", "rule", "named"),
    [
        (
            {"vgpr_spills": 12, "scratch_bytes": 52},
            "private_segment_fixed_size is 52",
            "spills 12 registers",
        ),
        ({"vgprs": 128}, "workgroups_per_cu is 2", "has room for 2 workgroups a CU in place of 1"),
    ],
)
def test_what_an_older_compiler_makes_slower_is_named(change, rule, named, capsys):
    slow = dataclasses.replace(_GOOD, **change)
    with pytest.raises(BuildError, match=rule):
        _check(slow)
    _check(slow, older_compiler=True)
    assert f"{_KERNELS[0].name} (gfx906) {named}" in capsys.readouterr().err


def test_an_older_compiler_keeps_no_arrays_in_scratch_and_takes_no_other_lds():
    with pytest.raises(BuildError, match="private_segment_fixed_size is 1408"):
        _check(dataclasses.replace(_GOOD, vgpr_spills=12, scratch_bytes=1408), older_compiler=True)
    with pytest.raises(BuildError, match="group_segment_fixed_size is 4100"):
        _check(dataclasses.replace(_GOOD, lds_bytes=4100), older_compiler=True)


@pytest.mark.parametrize(
    ("arch", "vgprs", "lds_bytes", "groups"),
    [
        ("gfx906", 128, 4096, 2),
        ("gfx906", 129, 4096, 1),
        ("gfx906", 84, 21504, 3),
        ("gfx906", 84, 21505, 2),
        ("gfx90a", 128, 4096, 4),
    ],
)
def test_workgroups_that_fit_a_compute_unit(arch, vgprs, lds_bytes, groups):
    found = dataclasses.replace(_GOOD, vgprs=vgprs, lds_bytes=lds_bytes)
    assert workgroups_per_cu(arch, _KERNELS[0].tile, found) == groups


def test_kernels_without_a_tile_may_not_spill_either():
    resources = {_KERNELS[0].name: _GOOD, "other": dataclasses.replace(_GOOD, vgprs=20, lds_bytes=0)}
    budget = {_KERNELS[0].name: 4096}
    check_resources("gfx906", _KERNELS[:1], resources, budget)
    rules = {
        "vgpr_spills": "vgpr_spill_count",
        "sgpr_spills": "sgpr_spill_count",
        "scratch_bytes": "private_segment_fixed_size",
    }
    for field, rule in rules.items():
        resources["other"] = dataclasses.replace(_GOOD, **{field: 4})
        with pytest.raises(BuildError, match=f"other: {rule} is 4, must be 0"):
            check_resources("gfx906", _KERNELS[:1], resources, budget)


@pytest.mark.parametrize(
    ("arch", "vgprs", "sgprs", "lds_bytes", "waves"),
    [
        ("gfx906", 24, 80, 0, 10),
        ("gfx906", 25, 80, 0, 9),
        ("gfx906", 24, 81, 0, 9),
        ("gfx906", 24, 89, 0, 8),
        ("gfx906", 24, 101, 0, 7),
        ("gfx906", 128, 80, 0, 2),
        ("gfx906", 128, 80, 32769, 1),
        ("gfx90a", 128, 80, 0, 4),
    ],
)
def test_waves_that_a_simd_holds(arch, vgprs, sgprs, lds_bytes, waves):
    """The steps of LLVM 19's "Occupancy" remark, at 256 threads."""
    found = dataclasses.replace(_GOOD, vgprs=vgprs, sgprs=sgprs, lds_bytes=lds_bytes, threads=256)
    assert waves_per_simd(arch, found) == waves


def test_missing_kernel_is_named():
    with pytest.raises(BuildError, match=f"{_KERNELS[0].name} is not in the code object"):
        check_resources("gfx906", _KERNELS[:1], {}, {})


def test_manifest_lists_every_kernel_of_every_arch():
    archs = json.loads((_LIB / "kernels.json").read_text())["archs"]
    for rows in archs.values():
        assert [row["name"] for row in rows] == [
            kernel.name for kernel in (*_KERNELS, *_CONFIG.bwd_kernels())
        ]
        assert all(row["spills"] == row["scratch"] == 0 for row in rows)
        assert all(row["occupancy_waves_per_simd"] >= 1 for row in rows)


def test_line_tables_change_no_byte_of_the_code(tmp_path):
    source = write_instances(tmp_path, _KERNELS[:1])
    command = kernels.compile_command("gfx906", source)
    plain = [option for option in command if option not in kernels._LINE_TABLES]
    text = []
    for name, options in (("lines", command), ("plain", plain)):
        file = tmp_path / name
        subprocess.run([*options, "-o", str(file)], check=True, capture_output=True)
        with file.open("rb") as stream:
            elf = ELFFile(stream)
            assert elf.has_dwarf_info() == (name == "lines")
            text.append(elf.get_section_by_name(".text").data())
            assert str(CSRC.parent).encode() not in file.read_bytes()
    assert text[0] == text[1]


def test_bundle_holds_each_object_on_a_page_of_its_own():
    objects = {"gfx906": b"\x7fELF" + bytes(5000), "gfx90a": b"\x7fELF second"}
    assert read_bundle(make_bundle(objects)) == {
        "host-x86_64-unknown-linux--": b"",
        "hipv4-amdgcn-amd-amdhsa--gfx906": objects["gfx906"],
        "hipv4-amdgcn-amd-amdhsa--gfx90a": objects["gfx90a"],
    }
