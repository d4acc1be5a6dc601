"""Rows of metrics on disk: what is read, what a resumed run keeps."""

import json

from train.metrics.rows import METRICS_FILE, keep_rows, read_rows


def write(path, rows, *, end=""):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + end)


def test_a_running_file_is_read_up_to_its_last_whole_line(tmp_path):
    path = tmp_path / METRICS_FILE
    rows = [{"iteration": 1, "loss": 2.0}, {"iteration": 2, "loss": 1.5}]
    write(path, rows, end='{"iteration": 3, "lo')
    assert read_rows(path) == rows


def test_a_damaged_byte_costs_its_row_alone(tmp_path):
    path = tmp_path / METRICS_FILE
    rows = [{"iteration": number, "loss": 2.0} for number in (1, 2, 3)]
    write(path, rows)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x80
    path.write_bytes(data)
    found = read_rows(path)
    assert [found[0], found[-1]] == [rows[0], rows[2]] and found != rows


def test_rows_after_the_checkpoint_are_dropped(tmp_path):
    path = tmp_path / METRICS_FILE
    assert keep_rows(path, 5) == []
    write(path, [{"iteration": number} for number in (1, 2, 3, 4)], end='{"it')
    assert [row["iteration"] for row in keep_rows(path, 3)] == [1, 2, 3]
    assert [row["iteration"] for row in read_rows(path)] == [1, 2, 3]
    assert [child.name for child in tmp_path.iterdir()] == [METRICS_FILE]
