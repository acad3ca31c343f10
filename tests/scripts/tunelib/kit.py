"""Trials and tiles for the tests of the tuner."""

from buildlib.tile_config import BwdShape, Clocks, TileShape
from tunelib.trial import Trial, Verdict


def tile(**keys):
    return TileShape(**{"head_dim": 64, "block_m": 64, "block_n": 64, "waves": 4, "p_keys": 32} | keys)


def bwd_tile(**keys):
    return BwdShape(**{"gradient": "dkdv", **tile().model_dump(exclude_defaults=True)} | keys)


def timed_bwd(shape, tflops, **figures):
    return Trial(shape, Verdict.TIMED, workgroups_per_cu=1, cycles=12345, tflops=tflops, **figures)


def timed(shape, *, step, step_full=None, fixed=1000, workgroups_per_cu=1, tflops=10.0):
    clocks = Clocks(fixed=fixed, step=step, step_full=step_full or step)
    figures = {"vgprs": 100, "sgprs": 50, "lds_bytes": 30000, "cycles": 12345, "clock_mhz": 1725.0}
    errors = {"max_error": 1e-4, "allowed_error": 5e-4}
    return Trial(
        shape,
        Verdict.TIMED,
        workgroups_per_cu=workgroups_per_cu,
        clocks=clocks,
        tflops=tflops,
        causes={"valu": 80.0},
        **figures,
        **errors,
    )
