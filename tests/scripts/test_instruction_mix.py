"""The instructions of inner loops, on a made-up disassembly and on the package's own kernels."""

import json
from pathlib import Path

import pytest

import flashattn_rocm
from buildlib import instruction_mix
from buildlib.errors import BuildError
from buildlib.instruction_mix import disassemble, inner_loop, loads_by_lanes, parse_disassembly
from buildlib.kernels import refuse_loads_by_lanes
from buildlib.toolchain import DeviceCompiler, find_device_compiler
from tests.kit.bundle import read_bundle

# As llvm-objdump 19 prints it: a loop with 2 dot2 inside a loop, and a shorter one with none.
_TEXT = """
0000000000001000 <first>:
\ts_load_dwordx2 s[0:1], s[4:5], 0x0    // 000000001000: C0060002 00000000
\tv_mov_b32_e32 v0, 0                   // 000000001008: 7E000280
\tds_read_b128 v[4:7], v1               // 00000000100C: D9FE0000 04000001
\ts_waitcnt lgkmcnt(0)                  // 000000001014: BF8CC07F
\tv_dot2_f32_f16 v0, v4, v5, v0         // 000000001018: D3A34000 1C020B04
\tv_dot2_f32_f16 v0, v6, v7, v0         // 000000001020: D3A34000 1C020F06
\ts_cbranch_scc1 65528                  // 000000001028: BF85FFF8 <first+0xc>
\ts_barrier                             // 00000000102C: BF8A0000
\ts_cbranch_scc1 65525                  // 000000001030: BF85FFF5 <first+0x8>
\tv_add_u32_e32 v0, v0, v1              // 000000001034: 68000300
\tv_add_u32_e32 v0, v0, v1              // 000000001038: 68000300
\ts_cbranch_vccnz 65533                 // 00000000103C: BF87FFFD <first+0x34>
\ts_cbranch_execz 1                     // 000000001040: BF880001 <first+0x48>
\ts_nop 0                               // 000000001044: BF800000
\ts_endpgm                              // 000000001048: BF810000

0000000000001060 <rare>:
\tv_dot2_f32_f16 v0, v4, v5, v0         // 000000001060: D3A34000 1C020B04
\tv_add_u32_e32 v0, v0, v1              // 000000001068: 68000300
\ts_cbranch_vccnz 65533                 // 00000000106C: BF87FFFD <rare+0x8>
\ts_cbranch_scc1 65531                  // 000000001070: BF85FFFB <rare>
\ts_endpgm                              // 000000001074: BF810000

0000000000001100 <straight>:
\ts_endpgm                              // 000000001100: BF810000
"""


def test_the_loop_without_another_inside_that_has_most_dot2():
    kernels = parse_disassembly(_TEXT)
    mix = inner_loop(kernels["first"])
    assert mix is not None
    counts = {"instructions": 5, "dot2": 2, "ds_read": 1, "waitcnt": 1, "dot2_share": 0.4}
    assert counts.items() <= mix.describe().items()
    assert mix.valu == mix.barrier == mix.load == mix.ds_write == 0
    assert inner_loop(kernels["straight"]) is None


def test_a_loop_without_products_does_not_hide_the_one_around_it():
    mix = inner_loop(parse_disassembly(_TEXT)["rare"])
    assert mix is not None
    assert (mix.instructions, mix.dot2, mix.valu) == (4, 1, 1)


def test_every_kernel_of_the_package_is_described():
    lib = Path(flashattn_rocm.__file__).parent / "lib"
    archs = json.loads((lib / "kernels.json").read_text())["archs"]
    for arch, kernels in archs.items():
        for kernel in kernels:
            loop = kernel["inner_loop"]
            assert loop["valu"] + loop["dot2"] < loop["instructions"]
            assert (loop["dot2"] > 0) == (arch != "gfx900" and kernel["element"] != "f32")
    # What the large tile is made for: 8 rows by 4 keys a lane, over 16 columns a trip.
    large = next(k for k in archs["gfx906"] if "_f16_d128_m128" in k["name"])
    assert large["inner_loop"]["dot2"] == 256
    assert large["inner_loop"]["dot2_share"] > 0.8


# What clang 19 made of a load of K in fp32, when the upper half of a stride was computed by v_alignbit_b32;
# and a loop over lanes that is none of a load.
_BY_LANES = """
0000000000001000 <waterfall>:
\ts_mov_b64 s[12:13], exec               // 000000001000: BE8C017E
\tv_readfirstlane_b32 s8, v3             // 000000001004: 7E100503
\tv_readfirstlane_b32 s9, v4             // 000000001008: 7E120504
\tv_cmp_eq_u64_e32 vcc, s[8:9], v[3:4]   // 00000000100C: 7DD40608
\ts_and_saveexec_b64 s[2:3], vcc         // 000000001010: BE82206A
\tbuffer_load_dwordx4 v[65:68], v93, s[8:11], 0 offen // 000000001014: E05C1000 8002415D
\ts_xor_b64 exec, exec, s[2:3]           // 00000000101C: 88FE027E
\ts_cbranch_execnz 65527                 // 000000001020: BF89FFF7 <waterfall+0x4>
\ts_endpgm                               // 000000001024: BF810000

0000000000001100 <divergent>:
\tbuffer_load_dwordx4 v[65:68], v93, s[8:11], 0 offen // 000000001100: E05C1000 8002415D
\ts_andn2_b64 exec, exec, s[2:3]         // 000000001108: 89FE027E
\ts_cbranch_execnz 65532                 // 00000000110C: BF89FFFC <divergent>
\ts_xor_b64 exec, exec, s[2:3]           // 000000001110: 88FE027E
\ts_cbranch_execnz 1                     // 000000001114: BF890001 <divergent+0x1c>
\ts_nop 0                                // 000000001118: BF800000
\ts_endpgm                               // 00000000111C: BF810000
"""


def test_loads_by_lanes_are_counted_and_refused_where_they_can_be_wrong():
    code = parse_disassembly(_BY_LANES)
    assert {name: loads_by_lanes(instructions) for name, instructions in code.items()} == {
        "waterfall": 1,
        "divergent": 0,
    }
    with pytest.raises(BuildError, match=r"in waterfall \(gfx906\).* build with clang 18 or newer"):
        refuse_loads_by_lanes("gfx906", code)
    refuse_loads_by_lanes("gfx906", {"divergent": code["divergent"]})


@pytest.mark.parametrize("name", ["kernels", "decode"])
def test_no_kernel_of_the_package_loads_by_lanes(name, tmp_path):
    bundle = Path(flashattn_rocm.__file__).parent / "lib" / f"{name}.hipfb"
    file = tmp_path / "kernels.co"
    for entry, content in read_bundle(bundle.read_bytes()).items():
        file.write_bytes(content)
        code = disassemble(file, find_device_compiler()) if content else {}
        loops = {kernel: loads_by_lanes(instructions) for kernel, instructions in code.items()}
        assert not any(loops.values()), (entry, {kernel: n for kernel, n in loops.items() if n})


def test_a_build_can_do_without_objdump(monkeypatch):
    monkeypatch.setattr(instruction_mix, "find_objdump", lambda compiler: "/nowhere/llvm-objdump")
    assert disassemble(Path("missing.co"), DeviceCompiler("clang++", 19, "clang version 19")) == {}
