"""The journal of a tuning run: one JSON line an event, written at once, so that a crash loses nothing."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tunelib.trial import Trial


class Journal:
    """Trials of one device and one state of the sources, and whole launches of what was chosen among them.

    A line is {"run": ...}, which says what the trials that follow belong to, {"begin": trial} before a launch
    and {"trial": trial} or, by Ctrl-C, {"stopped": tile} after it. A trial that began and did not end took
    the process with it; it is not tried again. A whole launch is {"launch": name, "clocks": null} before it
    and the same with its clocks after it.

    Attributes:
        trials: by tile.
        launches: clocks by kernel and shape; None where a launch began and did not end.

    Args:
        file: made if it is missing.
        run: what trials depend on beside their tile; a journal of another run is begun anew.
        fresh: forget what the file holds.
    """

    def __init__(self, file: Path, run: dict[str, Any], *, fresh: bool) -> None:
        self._file = file
        self.trials: dict[str, Trial] = {}
        self.launches: dict[str, float | None] = {}
        lines = [] if fresh else list(_read(file))
        self.stale = bool(lines) and lines[0].get("run") != run
        kept = [] if self.stale else lines[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(line) + "\n" for line in [{"run": run}, *kept]))
        for line in kept:
            if "stopped" in line:
                self.trials.pop(line["stopped"], None)
                self.launches.pop(line["stopped"], None)
                continue
            if "launch" in line:
                self.launches[line["launch"]] = line["clocks"]
                continue
            (raw,) = line.values()
            try:
                trial = Trial.from_json(raw)
            except (KeyError, TypeError, ValueError):  # of an older tuner, with other keys or limits
                continue
            self.trials[trial.tile.name] = trial

    def begin(self, trial: Trial) -> None:
        """Call it before a launch; `trial` is what will stand if the process does not survive it."""
        self._append({"begin": trial.to_json()})

    def end(self, trial: Trial) -> None:
        """Records a trial."""
        self.trials[trial.tile.name] = trial
        self._append({"trial": trial.to_json()})

    def stop(self, name: str) -> None:
        """Takes the beginning of a trial or launch back: the user ended it, and not it the process."""
        self._append({"stopped": name})

    def begin_launch(self, name: str) -> None:
        """Call it before a whole launch."""
        self.end_launch(name, None)

    def end_launch(self, name: str, clocks: float | None) -> None:
        """Records a whole launch."""
        self.launches[name] = clocks
        self._append({"launch": name, "clocks": clocks})

    def _append(self, line: dict[str, Any]) -> None:
        with self._file.open("a") as stream:
            stream.write(json.dumps(line) + "\n")
            stream.flush()
            os.fsync(stream.fileno())


def _read(file: Path) -> Iterator[dict[str, Any]]:
    """The lines up to the first that is not whole: the process may have ended while it wrote."""
    if not file.is_file():
        return
    for text in file.read_text().splitlines():
        try:
            yield json.loads(text)
        except ValueError:
            return
