"""The rows [[decode]]: their kernels, the generated sources, and the rules that a code object must pass."""

import dataclasses

import pytest

from buildlib.code_object import KernelResources
from buildlib.decode_kernels import check_decode_resources
from buildlib.errors import BuildError
from buildlib.generate import write_decode_instances, write_decode_table
from buildlib.kernels import included_files
from buildlib.paths import CSRC
from buildlib.tile_config import load_config
from flashattn_rocm.manifest import read_manifest

_KERNELS = load_config(("gfx906",)).decode_kernels()
_GOOD = KernelResources(120, 60, 0, 0, 0, 17552, 256)


def test_a_row_makes_a_kernel_for_each_of_its_elements(tmp_path):
    names = [kernel.name for kernel in _KERNELS]
    assert len(names) == len(set(names))
    assert {"flashattn_decode_f16_d128r4w4", "flashattn_decode_bf16_d128r4w4"} <= set(names)
    assert "flashattn_decode_bf16_d128r16w4" not in names
    instances = write_decode_instances(tmp_path, _KERNELS).read_text()
    table = write_decode_table(tmp_path, _KERNELS).read_text()
    tile = "flashattn::DecodeTile{128, 8, 4, flashattn::Access::chunks, 0, 16, 4}"
    element = "flashattn::Element::f16, flashattn::KvFormat::int8"
    assert f"flashattn::decode<{tile}, {element}>(args);" in instances
    assert f'{{"flashattn_decode_f16_d128r8w4_k16_v4_int8", {tile}, {element}, 2, ' in table
    assert '{"flashattn_decode_f16_d512r4w4_rope64", flashattn::DecodeTile{512, 4, 4, ' in table
    assert "flashattn::Access::chunks, 64, 8, 8}" in table


def test_manifest_lists_every_kernel():
    rows = read_manifest("decode")["archs"]["gfx906"]
    assert {kernel.name for kernel in _KERNELS} < {row["name"] for row in rows}


def _check(resources):
    check_decode_resources("gfx906", _KERNELS[:1], {_KERNELS[0].name: resources})


def test_good_kernel_passes():
    _check(_GOOD)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("vgpr_spills", 3, "3 VGPR spills"),
        ("sgpr_spills", 1, "1 SGPR spills"),
        ("scratch_bytes", 16, "16 bytes of scratch"),
        ("vgprs", 129, "workgroups_per_cu is 1, must be 2"),
    ],
)
def test_broken_rule_names_kernel_and_numbers(field, value, message):
    with pytest.raises(BuildError, match=message) as error:
        _check(dataclasses.replace(_GOOD, **{field: value}))
    assert _KERNELS[0].name in str(error.value)


def test_missing_kernel_is_named():
    with pytest.raises(BuildError, match=f"{_KERNELS[0].name} is not in the code object"):
        check_decode_resources("gfx906", _KERNELS[:1], {})


def test_a_source_depends_on_what_it_includes(tmp_path):
    source = tmp_path / "one.hip"
    source.write_text('#include "kernels/append_kv.h"\n')
    files = included_files(source)
    assert {source, CSRC / "kernels/append_kv.h", CSRC / "core/decode_args.h", CSRC / "core/tile.h"} <= set(
        files
    )
    assert CSRC / "kernels/fwd.h" not in files
