"""States of bundles from Python: sequences, reset, files, and sessions."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import hoist

import hoist_runtime
from hoist_runtime import ArgumentError, Error, Status


def field(number: int, content: int | str | bytes) -> bytes:
    """A field of a protobuf message: a small number, a text or a message."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    held = content.encode() if isinstance(content, str) else content
    assert len(held) < 1 << 14
    return bytes([number << 3 | 2, len(held) & 0x7F | 0x80, len(held) >> 7]) + held


def value(name: str) -> bytes:
    """A value of the type [3]f32."""
    tensor = field(1, 1) + field(2, field(1, field(1, 3)))
    return field(1, name) + field(2, field(1, tensor))


def sums() -> bytes:
    """hn = h + x, y = hn + hn."""
    def add(one: str, other: str, result: str) -> bytes:
        return field(1, field(1, one) + field(1, other) + field(2, result) + field(3, result) + field(4, "Add"))

    graph = add("h", "x", "hn") + add("hn", "hn", "y") + field(2, "sums")
    graph += field(11, value("x")) + field(11, value("h")) + field(12, value("y")) + field(12, value("hn"))
    return field(1, 10) + field(7, graph) + field(8, field(2, 21))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("states")
    (made / "sums.onnx").write_bytes(sums())
    for name, target in (("native", "native"), ("device", "opencl")):
        hoist("compile", made / "sums.onnx", "-o", made / f"{name}.hoist", "--state", "h=hn", "--initial", "h=[1,2,3]",
              "--target", target)
    return made


@pytest.mark.parametrize("name", ["native", "device"])
def test_a_run_continues_the_run_before(folder: Path, name: str, tmp_path: Path) -> None:
    x = np.array([1, 1, 2], np.float32)
    with hoist_runtime.open(folder / f"{name}.hoist") as bundle:
        assert [array.name for array in bundle.inputs] == ["x"]
        assert [array.name for array in bundle.outputs] == ["y"]
        assert [(array.name, array.shape) for array in bundle.states] == [("h", (3,))]
        for _ in range(2):
            assert bundle.state("h").tolist() == [1, 2, 3]
            assert bundle.run(x=x)[0].tolist() == [4, 6, 10]
            assert bundle.run()[0].tolist() == [6, 8, 14]
            bundle.reset_states()
        bundle.set_state("h", [10, 20, 30])
        bundle.run()
        bundle.save_states(tmp_path / "file")
        bundle.verify()
        assert bundle.state("h").tolist() == [1, 2, 3]
        bundle.load_states(tmp_path / "file")
        assert bundle.state("h").tolist() == [11, 21, 32]


def test_wrong_states_are_refused(folder: Path, tmp_path: Path, digits: Path) -> None:
    with hoist_runtime.open(folder / "native.hoist") as bundle:
        for wrong in (lambda: bundle.state("x"), lambda: bundle.set_state("h", [1, 2]),
                      lambda: bundle.set_state("h", np.zeros(3, np.int32)), lambda: bundle.run(h=[1, 2, 3]),
                      lambda: bundle.session(-1)):
            with pytest.raises(ArgumentError):
                wrong()
        (tmp_path / "file").write_bytes(b"HOISTSTA and more")
        with pytest.raises(Error, match="no file of saved states") as caught:
            bundle.load_states(tmp_path / "file")
        assert caught.value.status == Status.BAD_BUNDLE
        with pytest.raises(ArgumentError, match="cannot be written"):
            bundle.save_states(tmp_path / "absent" / "file")
    with hoist_runtime.open(digits) as without:
        assert without.states == []
        with pytest.raises(ArgumentError, match="has no state"):
            without.save_states(tmp_path / "file")


@pytest.mark.parametrize("name", ["native", "device"])
def test_sessions_have_states_of_their_own(folder: Path, name: str) -> None:
    bundle = hoist_runtime.open(folder / f"{name}.hoist")
    sessions = [bundle.session(threads=1) for _ in range(3)]
    bundle.run(x=[1, 1, 1])
    bundle.close()

    def runs(index: int) -> None:
        for _ in range(20):
            sessions[index].run(x=[index, index, index])

    threads = [threading.Thread(target=runs, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, session in enumerate(sessions):
        assert session.state("h").tolist() == [1 + 20 * index, 2 + 20 * index, 3 + 20 * index]
