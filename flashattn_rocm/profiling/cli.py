"""``flashattn-rocm profile``: runs a launch on the simulated card and reports where its time goes."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from rich.console import Console

from flashattn_rocm.profiling.output import print_report, write_csv, write_json
from flashattn_rocm.profiling.plots import figure_class, write_plots
from flashattn_rocm.profiling.profile import timed_launches
from flashattn_rocm.profiling.report import Report
from flashattn_rocm.profiling.source_lines import SourceLines, read_source_lines
from flashattn_rocm.profiling.work import ForwardShape

_TIMELINE = "FLASHATTN_SIM_TIMELINE"
_TIMELINE_ISSUES = "40000"  # on one CU: some six blocks of keys of the D128 forward
_NO_TERMINAL_WIDTH = 140
_DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
_LAUNCHES = ("dq", "dkdv")  # of a backward, in their order


def add_profile_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds ``profile`` with its own subcommands; each sets ``run``, a function of the options."""
    profile = commands.add_parser(
        "profile", help="where the simulated time of a launch goes", description=__doc__
    )
    kinds = profile.add_subparsers(dest="what", required=True)

    fwd = kinds.add_parser(
        "fwd", help="the forward of attention", description="Profiles the forward, simulated."
    )
    _add_shape(fwd)
    fwd.add_argument("--dtype", choices=_DTYPES, default="fp16")
    fwd.add_argument("--alibi", action="store_true", help="scores changed by ALiBi")
    fwd.add_argument("--dropout-p", type=_rate, default=0.0, metavar="P")
    _add_outputs(fwd)
    fwd.set_defaults(run=_run_fwd)

    bwd = kinds.add_parser(
        "bwd",
        help="the backward of attention",
        description="Profiles the backward, simulated: its two launches, and one of them in detail.",
    )
    _add_shape(bwd)
    bwd.add_argument("--launch", choices=_LAUNCHES, default="dkdv", help="the one to report")
    _add_outputs(bwd)
    bwd.set_defaults(run=_run_bwd)

    code_object = kinds.add_parser(
        "code-object",
        help="a kernel of any code object, with a launch description",
        description="Profiles a kernel of any code object, simulated.",
    )
    code_object.add_argument("launch", type=Path, metavar="LAUNCH.toml", help="see docs/examples/saxpy.toml")
    _add_outputs(code_object)
    code_object.set_defaults(run=_run_code_object)


def _add_shape(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--head-dim", type=_positive, default=128)
    parser.add_argument("--seqlen-q", type=_positive, default=4096)
    parser.add_argument("--seqlen-k", type=_positive, help="default: as --seqlen-q")
    parser.add_argument("--batch", type=_positive, default=1)
    parser.add_argument("--heads", type=_positive, default=8)
    parser.add_argument("--heads-kv", type=_positive, help="divides --heads; default: as --heads")
    parser.add_argument("--causal", action="store_true")


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no integer above 0")
    return value


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is no rate: at least 0 and below 1")
    return value


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the profile and the report")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="also write the report, a figure a line")
    parser.add_argument(
        "--plots", type=Path, metavar="DIR", help="also draw roofline, cycle causes and waves over time (PNG)"
    )


def _run_fwd(options: argparse.Namespace) -> int:
    from flashattn_rocm.interface import flash_attn_func

    shape = _shape(options)
    q, k, v = _inputs(shape, _DTYPES[options.dtype])
    slopes = torch.full((shape.heads,), 0.1) if options.alibi else None
    with _recorded_for(options), timed_launches() as launches:
        flash_attn_func(q, k, v, options.dropout_p, causal=shape.causal, alibi_slopes=slopes)
    (profile,) = launches
    _finish(Report(profile, shape.work(fp32=options.dtype == "fp32"), _packaged_source_lines()), options)
    return 0


def _run_bwd(options: argparse.Namespace) -> int:
    shape = _shape(options)
    q, k, v = _inputs(shape)
    out, lse = torch.ops.flashattn_rocm.fwd(q, k, v, None, shape.causal)
    with _recorded_for(options), timed_launches() as timed:
        torch.ops.flashattn_rocm.bwd(out, q, k, v, out, lse, None, shape.causal)
    launches = dict(zip(_LAUNCHES, timed, strict=True))
    for name, profile in launches.items():
        print(f"{name}: {profile.clocks:,.0f} simulated clocks, {profile.kernel}")
    seconds = sum(profile.milliseconds for profile in launches.values()) / 1e3
    print(f"backward: {shape.backward_flop / seconds / 1e12:.2f} simulated TFLOPS of five products")
    work = shape.backward_work(options.launch)
    _finish(Report(launches[options.launch], work, _packaged_source_lines()), options)
    return 0


def _shape(options: argparse.Namespace) -> ForwardShape:
    return ForwardShape(
        head_dim=options.head_dim,
        seqlen_q=options.seqlen_q,
        seqlen_k=options.seqlen_k or options.seqlen_q,
        batch=options.batch,
        heads=options.heads,
        heads_kv=options.heads_kv or options.heads,
        causal=options.causal,
    )


def _inputs(shape: ForwardShape, dtype: torch.dtype = torch.float16) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)

    def tensor(seqlen: int, heads: int) -> torch.Tensor:
        return torch.randn(shape.batch, seqlen, heads, shape.head_dim, generator=generator).to(dtype)

    keys = (shape.seqlen_k, shape.heads_kv)
    return tensor(shape.seqlen_q, shape.heads), tensor(*keys), tensor(*keys)


def _packaged_source_lines() -> SourceLines | None:
    import flashattn_rocm._C as _C

    try:
        return read_source_lines(Path(_C.kernels_path))
    except ImportError:  # of pyelftools, which the tables do without
        return None


def _run_code_object(options: argparse.Namespace) -> int:
    from flashattn_rocm.profiling.launch_file import profile_launch, read_launch_file

    launch = read_launch_file(options.launch)
    with _recorded_for(options):
        profile = profile_launch(launch, options.launch.parent)
    lines = read_source_lines(options.launch.parent / launch.code_object)
    _finish(Report(profile, launch.work(), lines), options)
    return 0


@contextmanager
def _recorded_for(options: argparse.Namespace) -> Iterator[None]:
    """Launches inside the block record the timeline if a plot will show it; matplotlib must be there."""
    if options.plots is not None:
        figure_class()
    if options.plots is None or _TIMELINE in os.environ:
        yield
        return
    os.environ[_TIMELINE] = _TIMELINE_ISSUES
    try:
        yield
    finally:
        del os.environ[_TIMELINE]


def _finish(report: Report, options: argparse.Namespace) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=_NO_TERMINAL_WIDTH)
    print_report(report, console)
    written: list[Path] = []
    if options.json is not None:
        write_json(report, options.json)
        written.append(options.json)
    if options.csv is not None:
        write_csv(report, options.csv)
        written.append(options.csv)
    if options.plots is not None:
        written += write_plots(report, options.plots)
    for path in written:
        console.print(f"wrote {path}", soft_wrap=True, highlight=False)
