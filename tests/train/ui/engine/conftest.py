"""The page's engine in node, where there is one."""

import shutil

import pytest

from tests.support.node import Engine


@pytest.fixture(scope="module")
def engine():
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs the program node")
    started = Engine(node)
    yield started
    started.close()
