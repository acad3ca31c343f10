"""torch.distributed's context parallelism reaches the kernels through aten's flash operation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 12), reason="uses the interface of torch 2.12"
)


@pytest.mark.long
def test_two_processes_share_a_sequence():
    script = Path(__file__).with_name("context_parallel.py")
    run = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
        str(script),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(script.parents[2]), *sys.path])}
    done = subprocess.run(run, capture_output=True, text=True, env=environment, timeout=500)
    assert done.returncode == 0, done.stderr
