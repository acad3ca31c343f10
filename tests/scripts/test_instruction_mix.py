"""The instructions of inner loops, on a made-up disassembly and on the package's own kernels."""

import json
from pathlib import Path

import flashattn_rocm
from buildlib import instruction_mix
from buildlib.instruction_mix import inner_loop, inner_loops, parse_disassembly
from buildlib.toolchain import DeviceCompiler

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


def test_a_build_can_do_without_objdump(monkeypatch):
    monkeypatch.setattr(instruction_mix, "find_objdump", lambda compiler: "/nowhere/llvm-objdump")
    assert inner_loops(Path("missing.co"), DeviceCompiler("clang++", 19, "clang version 19")) == {}
