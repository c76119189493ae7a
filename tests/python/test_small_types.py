"""Types that numpy lacks, by casts among the ONNX project's cases: from float32, and back."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from conftest import hoist

import hoist_runtime
from hoist_runtime import _scalars

# ONNX's name, hoist's, and values of the type.
TYPES = [
    ("BFLOAT16", "bf16", [0, 1, -2.5, 3.140625, 2.0**100]),
    ("FLOAT8E4M3FN", "f8e4m3fn", [0, 1, -2.5, 448, 0.015625]),
    ("FLOAT8E5M2", "f8e5m2", [0, 1, -2.5, 57344, 0.25]),
    ("FLOAT4E2M1", "f4e2m1", [0, 0.5, -1.5, 6, -4]),
    ("INT4", "i4", [0, 7, -8, -1, 3]),
    ("UINT4", "u4", [0, 15, 8, 1, 3]),
    ("UINT2", "u2", [0, 3, 2, 1, 3]),
]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = sorted(Path(os.environ.get("HOIST_SHARED", "/nowhere")).glob("data/onnx_backend_tests/*.tar.xz"))
    if not found:
        pytest.skip("HOIST_SHARED has no cases of the ONNX project")
    folder = tmp_path_factory.mktemp("cases")
    wanted = {f"data/node/test_cast_{way}/model.onnx": way
              for name, _, _ in TYPES for way in (f"FLOAT_to_{name}", f"{name}_to_FLOAT")}
    with tarfile.open(found[0]) as archive:
        for member in archive:
            if member.name in wanted:
                content = archive.extractfile(member)
                assert content is not None
                (folder / f"{wanted[member.name]}.onnx").write_bytes(content.read())
    return folder


@pytest.mark.parametrize("name, scalar, numbers", TYPES, ids=[row[0] for row in TYPES])
def test_there_and_back(cases: Path, tmp_path: Path, name: str, scalar: str, numbers: list[float]) -> None:
    for way in (f"FLOAT_to_{name}", f"{name}_to_FLOAT"):
        hoist("compile", cases / f"{way}.onnx", "-o", tmp_path / f"{way}.hoist", "--no-check")
    with hoist_runtime.open(tmp_path / f"FLOAT_to_{name}.hoist") as there, \
            hoist_runtime.open(tmp_path / f"{name}_to_FLOAT.hoist") as back:
        [given], [small] = there.inputs, back.inputs
        assert small.scalar == scalar and there.outputs[0].dtype == small.dtype
        floats = np.resize(np.array(numbers, np.float32), given.shape)
        [cast] = there.run([floats])
        assert cast.dtype == small.dtype and cast.shape == given.shape
        [again] = back.run([cast.reshape(small.shape)])
        np.testing.assert_array_equal(again, floats.reshape(again.shape))
        if small.reason:
            assert _scalars.ml_dtypes is None and "ml_dtypes is not installed" in small.reason
            with pytest.raises(hoist_runtime.ArgumentError, match="ml_dtypes"):
                back.run([again])
        else:
            assert floats.astype(small.dtype).tobytes() == cast.tobytes()
            with pytest.raises(hoist_runtime.ArgumentError, match=f"holds {small.dtype.name}, not float32: array.astype"):
                back.run([again])
        # Views of packed elements are the bytes.
        held = back.input_memory(small.name)
        assert held.nbytes == -(-floats.size * _scalars.element_type(scalar).bits // 8)
        assert held.dtype == (np.uint8 if _scalars.element_type(scalar).is_packed else small.dtype)
