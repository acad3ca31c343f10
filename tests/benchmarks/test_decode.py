"""scripts/benchmark.py --decode on the simulated card."""

import json

import pytest

from flashattn_rocm.benchmarks import cli, decode
from flashattn_rocm.benchmarks.cli import main
from flashattn_rocm.benchmarks.decode import DecodeShape, decode_shapes


def test_rows_say_how_fast_unique_bytes_are_read(tmp_path, capsys, monkeypatch):
    shapes = [DecodeShape(1, 2048, 4, 2, 64), DecodeShape(2, 1024, 4, 2, 64, page_size=16)]
    monkeypatch.setattr(cli, "decode_shapes", lambda quick: shapes)
    assert main(["--decode", "--json", str(tmp_path / "d.json"), "--out", str(tmp_path / "out")]) == 0
    dense, paged = json.loads((tmp_path / "d.json").read_text())
    assert dense["kv_bytes"] == paged["kv_bytes"] == 2 * 2048 * 4 * 64 * 2
    assert (dense["page_size"], paged["page_size"]) == (0, 16)
    for row in (dense, paged):
        assert row["gbps_unique_kv"] == pytest.approx(row["kv_bytes"] / row["ms"] / 1e6)
        assert row["kv_bytes"] <= row["hbm_read_bytes"] <= 1.05 * row["kv_bytes"]
        assert row["tile"].startswith("flashattn_decode_f16_d64r4")
    assert "pages of 16" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"decode.md", "decode.csv"}


def test_a_run_without_a_row_writes_nothing(tmp_path, monkeypatch, capsys):
    def fails(device, shape):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(cli, "run_decode", fails)
    file = tmp_path / "d.json"
    file.write_text("of an earlier run")
    assert main(["--decode", "--quick", "--json", str(file), "--out", str(tmp_path / "out")]) == 1
    assert "benchmark: error: out of memory" in capsys.readouterr().out
    assert file.read_text() == "of an earlier run"
    assert not (tmp_path / "out").exists()


def test_a_shared_prefix_counts_once(tmp_path, monkeypatch):
    shapes = [DecodeShape(4, 64, 2, 2, 64, seqlen_prefix=1024)]
    monkeypatch.setattr(cli, "decode_shapes", lambda quick: shapes)
    assert main(["--decode", "--json", str(tmp_path / "d.json"), "--out", str(tmp_path / "out")]) == 0
    (row,) = json.loads((tmp_path / "d.json").read_text())
    assert row["kv_bytes"] == 2 * (4 * 64 + 1024) * 2 * 64 * 2
    assert row["seqlen_prefix"] == 1024
    assert "behind a shared 1024" in (tmp_path / "out/decode.md").read_text()


def test_sequences_of_unequal_lengths_count_by_themselves(tmp_path, monkeypatch):
    shapes = [DecodeShape(3, 2048, 2, 2, 64, 16, lengths=(2048, 0, 100))]
    monkeypatch.setattr(cli, "decode_shapes", lambda quick: shapes)
    assert main(["--decode", "--json", str(tmp_path / "d.json"), "--out", str(tmp_path / "out")]) == 0
    (row,) = json.loads((tmp_path / "d.json").read_text())
    assert row["kv_bytes"] == 2 * (2048 + 100) * 2 * 64 * 2
    assert row["kv_bytes"] <= row["hbm_read_bytes"] <= 1.1 * row["kv_bytes"]
    assert row["lengths"] == [2048, 0, 100]
    assert "2048, 0, 100" in (tmp_path / "out/decode.md").read_text()


def test_the_tables_shapes():
    shapes = decode_shapes()
    assert {shape.ratio for shape in shapes} >= {1, 4, 6, 8}
    assert {shape.page_size for shape in shapes} >= {0, 16}
    assert len(decode_shapes(quick=True)) < len(shapes)
    assert decode.TITLE.startswith("Decode")
