"""Broken code objects and impossible calls: an error that says why, and the process lives on."""

import json

import pytest

from buildlib.bundle import make_bundle


@pytest.fixture(scope="module")
def outcomes(run_python, kernels, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad_input")
    bundle = folder / "whole.bundle"
    bundle.write_bytes(make_bundle({"gfx906": kernels.read_bytes()}))
    return json.loads(run_python("bad_input", kernels, bundle, folder, FLASHATTN_SIM_LOG="0"))


def test_a_cut_file_is_refused_wherever_it_ends(outcomes):
    assert {outcome["code"] for outcome in outcomes["cut"]} == {"hipErrorInvalidImage"}


@pytest.mark.parametrize("kind", ["damaged", "damaged bundle"])
def test_wrong_bytes_are_refused_in_one_line_or_harmless_to_the_process(outcomes, kind):
    for outcome in outcomes[kind]:
        if outcome["code"] == "hipSuccess":  # in the code, or in what is not read
            continue
        assert outcome["text"].startswith("hipModuleLoad: ")
        assert "\n" not in outcome["text"]
    assert {"hipSuccess", "hipErrorInvalidImage"} <= {outcome["code"] for outcome in outcomes[kind]}
    assert outcomes["whole"]["code"] == "hipSuccess"


def test_a_compressed_bundle_says_how_to_compile(outcomes):
    assert outcomes["compressed"]["code"] == "hipErrorNotSupported"
    assert "--no-offload-compress" in outcomes["compressed"]["text"]


def test_an_unknown_kernel_is_named_beside_those_that_exist(outcomes):
    assert outcomes["no such kernel"]["code"] == "hipErrorNotFound"
    assert outcomes["no such kernel"]["text"].startswith("hipModuleGetFunction: no kernel vsub;")
    assert "vadd" in outcomes["no such kernel"]["text"]


@pytest.mark.parametrize(
    "function", ["hipGraphCreate", "hipMallocManaged", "hipBindTexture", "hipModuleGetTexRef"]
)
def test_a_call_that_the_simulator_lacks_is_named(outcomes, function):
    assert outcomes[function] == {
        "code": "hipErrorNotSupported",
        "text": f"{function}: not implemented by the simulator",
    }
