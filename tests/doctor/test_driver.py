"""Device files, permission, cards, and variables that hide them."""

from types import SimpleNamespace

import pytest

from flashattn_rocm_doctor.driver import check_driver, check_settings


def test_a_machine_with_a_card(with_card):
    findings = check_driver(with_card.machine(), card_wanted=True)
    assert [finding.status for finding in findings] == ["ok", "ok"]
    assert findings[0].found == "amdgpu 6.10.5 offers gfx906 (16.0 GiB)"
    assert findings[1].found == "/dev/kfd and 1 of /dev/dri/renderD* can be opened"


def test_archs_of_the_topology(fake):
    fake.add_kfd(90006, 90010, 90402, 110001)
    assert [gpu.arch for gpu in fake.machine().gpus()] == ["gfx906", "gfx90a", "gfx942", "gfx1101"]


@pytest.mark.parametrize(("card_wanted", "status"), [(True, "fail"), (False, "warn")])
def test_no_card_at_all(fake, only, card_wanted, status):
    finding = only(check_driver(fake.machine(), card_wanted))
    assert finding.status == status
    assert "there is no /dev/kfd" in finding.found
    assert ("simulated card" in finding.found) == (not card_wanted)
    assert "lspci -d 1002:" in finding.advice
    assert "Above 4G Decoding" in finding.advice


def test_another_vendors_card_is_none(fake, only):
    fake.add_pci_card(vendor="0x10de")
    assert "lspci -d 1002:" in only(check_driver(fake.machine(), True)).advice


def test_an_amd_network_device_is_none(fake, only):
    fake.add_pci_card(kind="0x020000")
    assert "lspci -d 1002:" in only(check_driver(fake.machine(), True)).advice


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv"])
def test_container_without_the_device(fake, only, mark):
    fake.write(mark)
    advice = only(check_driver(fake.machine(), True)).advice
    assert "--device=/dev/kfd --device=/dev/dri --group-add video --group-add render" in advice


def test_driver_is_not_loaded(fake, only):
    fake.add_pci_card()
    advice = only(check_driver(fake.machine(), True)).advice
    assert "sudo modprobe amdgpu" in advice
    assert "amdgpu-dkms" in advice


def test_driver_without_compute(fake, only):
    fake.add_pci_card()
    fake.add_driver()
    advice = only(check_driver(fake.machine(), True)).advice
    assert "dmesg | grep -i kfd" in advice
    assert "CONFIG_HSA_AMD" in advice


def test_driver_that_refused_the_card(fake, only):
    fake.add_pci_card()
    fake.add_kfd()
    fake.write("dev/dri/renderD128")
    finding = only(check_driver(fake.machine(), True))
    assert finding.found == "amdgpu offers no card for computing"
    assert "dmesg" in finding.advice


@pytest.mark.parametrize("closed", ["dev/kfd", "dev/dri/renderD128"])
def test_no_permission(with_card, only, closed, monkeypatch):
    with_card.closed = {closed}
    monkeypatch.setattr("grp.getgrgid", lambda number: SimpleNamespace(gr_name="render"))
    finding = only(check_driver(with_card.machine(), True))
    assert finding.status == "fail"
    assert finding.found == f"this user may not open /{closed}"
    assert "sudo usermod -aG render $USER" in finding.advice
    assert "--group-add render" in finding.advice


def test_group_without_a_name(with_card, monkeypatch):
    def unknown(number):
        raise KeyError(number)

    monkeypatch.setattr("grp.getgrgid", unknown)
    machine = with_card.machine()
    assert machine.group_of(machine.kfd) == str(machine.kfd.stat().st_gid)


def test_no_render_node(with_card, only):
    (with_card.root / "dev/dri/renderD128").unlink()
    finding = only(check_driver(with_card.machine(), True))
    assert finding.found == "there is no /dev/dri/renderD*"
    assert "Pass /dev/dri to the container" in finding.advice


def test_no_variable(fake):
    (finding,) = check_settings(fake.machine(), True)
    assert finding.status == "ok"


@pytest.mark.parametrize("name", ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"])
@pytest.mark.parametrize("value", ["", "-1"])
def test_hidden_cards(fake, only, name, value):
    fake.environment = {name: value}
    finding = only(check_settings(fake.machine(), True))
    assert (finding.status, finding.found) == ("fail", f"{name}={value} hides every card")
    assert finding.advice == f"Unset {name}."
    assert only(check_settings(fake.machine(), False)).status == "warn"


def test_one_visible_card_is_fine(fake):
    fake.environment = {"HIP_VISIBLE_DEVICES": "1"}
    assert [finding.status for finding in check_settings(fake.machine(), True)] == ["ok"]


def test_disguised_card(fake, only):
    fake.environment = {"HSA_OVERRIDE_GFX_VERSION": "9.0.0"}
    finding = only(check_settings(fake.machine(), True))
    assert finding.status == "warn"
    assert "Unset HSA_OVERRIDE_GFX_VERSION" in finding.advice


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("FLASHATTN_ROCM_BACKEND", "auto, hip, sim"), ("FLASHATTN_ROCM_SDPA", "0, 1, strict")],
)
def test_misspelt_setting(fake, only, name, allowed):
    fake.environment = {name: "yes"}
    finding = only(check_settings(fake.machine(), True))
    assert (finding.status, finding.found) == ("fail", f"{name}=yes is unknown")
    assert f"one of {allowed}" in finding.advice


@pytest.mark.parametrize(
    ("value", "found", "advice"),
    [
        ("1", "waits for the card in every call with a KV cache", "unless you look for a wrong length"),
        ("yes", "is unknown and ignored", "one of 0, 1"),
    ],
)
def test_index_checks(fake, only, value, found, advice):
    fake.environment = {"FLASHATTN_ROCM_CHECK_INDICES": value}
    finding = only(check_settings(fake.machine(), True))
    assert (finding.status, finding.found) == ("warn", f"FLASHATTN_ROCM_CHECK_INDICES={value} {found}")
    assert advice in finding.advice


def test_index_checks_left_out(fake):
    fake.environment = {"FLASHATTN_ROCM_CHECK_INDICES": "0"}
    assert [finding.status for finding in check_settings(fake.machine(), True)] == ["ok"]


def test_forced_kernel(fake, only):
    fake.environment = {"FLASHATTN_ROCM_FWD_TILE": "some_kernel"}
    finding = only(check_settings(fake.machine(), True))
    assert finding.status == "warn"
    assert "Unset FLASHATTN_ROCM_FWD_TILE" in finding.advice
