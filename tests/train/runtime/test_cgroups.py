"""What a container may take of its machine."""

import pytest

from train.runtime import cgroups

FIRST = {
    "memory/box/memory.limit_in_bytes": "3000\n",
    "memory/memory.limit_in_bytes": "9223372036854771712\n",
    "cpu/box/inner/cpu.cfs_quota_us": "-1\n",
    "cpu/box/inner/cpu.cfs_period_us": "100000\n",
    "cpu/box/cpu.cfs_quota_us": "150000\n",
    "cpu/box/cpu.cfs_period_us": "100000\n",
}
SECOND = {
    "user/memory.max": "5000\n",
    "user/app/memory.max": "max\n",
    "user/cpu.max": "400000 100000\n",
    "user/app/cpu.max": "max 100000\n",
}


@pytest.mark.parametrize(
    ("membership", "files", "memory", "cpu"),
    [
        ("4:memory:/box/inner\n3:cpu,cpuacct:/box/inner\n", FIRST, [3000, 2**63 - 4096], [1.5]),
        ("0::/user/app\n", SECOND, [5000], [4.0]),
        ("0::/user/app\n", {}, [], []),
        ("4:memory:/\n1:cpu:/box\n0::/user\n", FIRST | SECOND, [5000, 2**63 - 4096], [1.5, 4.0]),
        ("", {}, [], []),
    ],
)
def test_the_limits_of_groups_and_of_those_above(tmp_path, membership, files, memory, cpu):
    root = tmp_path / "fs"
    for name, text in {"../cgroup": membership, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    where = tmp_path / "cgroup", root
    assert sorted(cgroups.memory_limits(*where)) == memory
    assert sorted(cgroups.cpu_quotas(*where)) == cpu


def test_without_control_groups_nothing_is_limited(tmp_path):
    assert [*cgroups.memory_limits(tmp_path / "none"), *cgroups.cpu_quotas(tmp_path / "none")] == []
