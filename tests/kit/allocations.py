"""What torch allocates while a function runs, on whatever device."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.profiler import ProfilerActivity, profile


def peak_allocation(function: Callable[[], Any]) -> int:
    """The most bytes allocated in the call that were alive at once, its result included."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = function()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    del result
    memory = sorted((e for e in events if e["name"] == "[memory]"), key=lambda event: event["ts"])
    peak = now = 0
    for event in memory:
        now += event["args"]["Bytes"]
        peak = max(peak, now)
    return peak
