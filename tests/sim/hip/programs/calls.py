"""What every test program does with a HIP call's result tuple."""

from hip import hip


def check(result):
    """Returns what a call gave; raises if it did not succeed."""
    error, *values = result if isinstance(result, tuple) else (result,)
    if error != hip.hipError_t.hipSuccess:
        raise RuntimeError(str(error))
    return values[0] if len(values) == 1 else tuple(values)


def code(result) -> str:
    """Returns the name of a call's error code."""
    return (result[0] if isinstance(result, tuple) else result).name
