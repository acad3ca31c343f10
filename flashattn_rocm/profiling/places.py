"""Where in the code the clocks go: by source line where it is known, else by instruction."""

from collections.abc import Iterator
from typing import Literal

from flashattn_rocm.profiling.profile import Profile
from flashattn_rocm.profiling.rows import Row, share
from flashattn_rocm.profiling.source_lines import SourceLines

_SHOWN = 10


def places_of(
    p: Profile, source_lines: SourceLines | None, of: Literal["clocks", "lds_conflict_clocks"]
) -> Iterator[Row]:
    """The worst places first, the rest in one row.

    Args:
        p: the profile.
        source_lines: of the code object; None: places are instructions.
        of: which figure of an instruction.
    """
    places: dict[str, int] = {}
    worst_instruction: dict[str, tuple[int, str]] = {}
    for cost in p.by_instruction:
        clocks: int = getattr(cost, of)
        if clocks == 0:
            continue
        line = source_lines[cost.text_offset] if source_lines is not None else None
        place = line or f".text+{cost.text_offset:#x}"
        places[place] = places.get(place, 0) + clocks
        worst_instruction[place] = max(
            worst_instruction.get(place, (0, "")), (clocks, cost.instruction), key=lambda worst: worst[0]
        )
    total = sum(places.values())
    worst = sorted(places.items(), key=lambda item: -item[1])
    for place, clocks in worst[:_SHOWN]:
        yield Row(place, clocks, "clocks", f"{share(clocks, total)}, most {worst_instruction[place][1]}")
    if len(worst) > _SHOWN:
        rest = sum(clocks for _, clocks in worst[_SHOWN:])
        yield Row("elsewhere", rest, "clocks", share(rest, total))
