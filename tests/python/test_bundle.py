"""Opening, running and checking bundles from Python."""

from __future__ import annotations

import gc
import json
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import SOURCE, hoist

import hoist_runtime
from hoist_runtime import ArgumentError, Error, Status


def images(count: int) -> np.ndarray:
    with np.load(SOURCE / "models" / "digits_fully_connected_test.npz") as data:
        held = data["image"] if "image" in data else data[data.files[0]]
        return held[:count].astype(np.float32).reshape(count, 1, 8, 8)


@pytest.mark.parametrize("name", ["digits.hoist", "sizes.hoist"])
def test_gives_what_hoist_run_gives(bundles: Path, tmp_path: Path, name: str) -> None:
    image = images(1)
    np.save(tmp_path / "image.npy", image)
    hoist("run", bundles / name, "--input", f"image={tmp_path / 'image.npy'}", "--output-dir", tmp_path / "out")
    expected = np.load(tmp_path / "out" / "logits.npy")
    with hoist_runtime.open(bundles / name) as bundle:
        for outputs in (bundle.run(image=image), bundle.run({"image": image}), bundle.run([image]),
                        bundle.run(image=image.tolist()), bundle.run(image=image.astype(">f4"))):
            [logits] = outputs
            assert logits.dtype == np.float32 and logits.shape == (1, 10)
            assert logits.tobytes() == expected.tobytes()
        assert bundle.output("logits").tobytes() == expected.tobytes()
        # Rows that are not contiguous in memory.
        [logits] = bundle.run(image=np.repeat(image, 2, axis=3)[..., ::2])
        assert logits.tobytes() == expected.tobytes()


def test_pictures_become_inputs_as_the_bundle_says(tmp_path: Path, digits: Path) -> None:
    told = tmp_path / "told.hoist"
    hoist("compile", SOURCE / "models" / "digits_fully_connected.onnx", "-o", told, "--no-check", "--dim", "N=2", "--target",
          "native", "--resize", "9", "--crop", "8", "--mean", "0.5", "--std", "0.25")
    picture = (np.arange(13 * 11) * 37 % 256).astype(np.uint8).reshape(13, 11)
    with hoist_runtime.open(told) as bundle:
        how = bundle.preprocessing("image")
        assert how is not None and (how.rows, how.columns, how.channels, how.resize, how.crop) == (8, 8, 1, 9, True)
        assert (how.scale, how.mean, how.deviation) == (1 / 255, (0.5,), (0.25,))
        # The second has rows that are not contiguous, and is flipped.
        wide = np.zeros((13, 20, 1), np.uint8)
        wide[:, :11, 0] = picture
        bundle.set_pixels("image", [picture, wide[::-1, :11]])
        both = bundle.run()[0]
        bundle.set_pixels("image", np.stack([picture[::-1], picture])[..., None])
        assert bundle.run()[0].tobytes() == both[::-1].tobytes()
        assert not np.array_equal(both[0], both[1])
        # A uniform image of any size is a uniform input.
        bundle.set_pixels("image", [np.full((40, 30), 51, np.uint8)] * 2)
        even = bundle.run()[0]
        assert even.tobytes() == bundle.run(image=np.full((2, 1, 8, 8), (0.2 - 0.5) / 0.25, np.float32))[0].tobytes()
        for wrong in ([picture], np.zeros((2, 4, 4, 3), np.uint8), [picture.astype(np.float32)] * 2, np.uint8(3)):
            with pytest.raises((ArgumentError, TypeError)):
                bundle.set_pixels("image", wrong)
        assert bundle.run()[0].shape == (2, 10)
    with hoist_runtime.open(digits) as bundle:
        assert bundle.preprocessing("image") is None
        with pytest.raises(ArgumentError, match="does not state how pixels become it"):
            bundle.set_pixels("image", picture)


def test_most_digits_are_right(digits: Path) -> None:
    with np.load(SOURCE / "models" / "digits_fully_connected_test.npz") as data:
        labels = next(data[name] for name in data.files if data[name].dtype.kind in "iu" and data[name].ndim == 1)
    with hoist_runtime.open(digits) as bundle:
        found = [int(bundle.run(image=image[None])[0].argmax()) for image in images(100)]
    assert sum(found == labels[:100]) > 90


def test_says_what_there_is(bundles: Path, digits: Path) -> None:
    with hoist_runtime.open(digits) as bundle:
        assert bundle.model == "digits_fully_connected"
        [image], [logits] = bundle.inputs, bundle.outputs
        assert (image.name, image.scalar, image.shape, image.dtype) == ("image", "f32", (1, 1, 8, 8), np.float32)
        assert (logits.name, logits.shape, logits.reason) == ("logits", (1, 10), "")
        assert bundle.device == hoist_runtime.devices()[bundle.device_index].name
        assert bundle.fits_profile and bundle.threads > 0 and bundle.folder == digits
        assert bundle.cache_outcome.startswith(("hit", "miss"))
        assert bundle.manifest["model"]["name"] == "digits_fully_connected"
        assert [step.layers for step in bundle.steps][0][0] == "flatten"
        assert "logits f32[1, 10] from image f32[1, 1, 8, 8]" in repr(bundle)
        bundle.seed_inputs(1)
        assert all(step.seconds > 0 for step in bundle.profile())
    with hoist_runtime.open(bundles / "sizes.hoist", threads=1) as bundle:
        assert bundle.device_index is None and bundle.device.startswith("native ") and bundle.threads == 1


def test_options(digits: Path, tmp_path: Path) -> None:
    with hoist_runtime.open(digits, cache=False) as bundle:
        assert bundle.cache_outcome.startswith("miss")
        with hoist_runtime.open(digits, context_of=bundle) as other:
            assert other.device == bundle.device
        with pytest.raises(ArgumentError, match="is closed"):
            hoist_runtime.open(digits, context_of=other)
    with hoist_runtime.open(digits, device=0, cache_folder=tmp_path, threads=1) as bundle:
        assert bundle.device_index == 0 and bundle.threads == 1 and list(tmp_path.iterdir())
    with pytest.raises(Error, match="no such device") as raised:
        hoist_runtime.open(digits, device="no such device")
    assert raised.value.status is Status.NO_DEVICE and "NO_DEVICE" in str(raised.value)


def test_progress(digits: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int, str]] = []
    with hoist_runtime.open(digits, cache_folder=tmp_path, progress=lambda *part: told.append(part)) as bundle:
        bundle.seed_inputs(1)
        steps = [step.kernel for step in bundle.profile()]
    total = len(set(steps)) + 1
    launches = json.loads((digits / "manifest.json").read_text()).get("launches", [])
    for launch in launches:
        steps[launch["first_step"] : launch["first_step"] + launch["steps"]] = [launch["name"]] * launch["steps"]
    assert told[0] == (0, total, "") and told[-1] == (total, total, "")
    assert {kernel for _, _, kernel in told} == {*steps, ""}
    with hoist_runtime.open(digits, cache_folder=tmp_path, progress=lambda *part: told.append(part)):
        assert told[-2:] == [(0, total, ""), (total, total, "")]


def test_seeds_are_the_same_numbers_everywhere(bundles: Path, digits: Path) -> None:
    outputs = []
    for path in (digits, bundles / "sizes.hoist"):
        with hoist_runtime.open(path) as bundle:
            bundle.seed_inputs(7)
            outputs.append(bundle.run()[0])
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("given, message", [
    ({"image": np.zeros((1, 1, 8, 8))}, r"input image holds float32, not float64: array.astype\('float32'\) converts"),
    ({"image": np.zeros((1, 8, 8), np.float32)}, r"the bundle is not compiled for \[1,8,8\] \(there are: \[1,1,8,8\]\)"),
    ({"picture": 1}, r"no input is called picture \(there are: image\)"),
    ({"image": "text"}, "input image: could not convert"),
    ([], "0 inputs given in order, the bundle has 1: image"),
    (np.zeros((1, 1, 8, 8), np.float32), r"run\(\[array\]\)"),
])
def test_says_what_does_not_fit(digits: Path, given: object, message: str) -> None:
    with hoist_runtime.open(digits) as bundle:
        with pytest.raises(ArgumentError, match=message) as raised:
            bundle.run(given)  # type: ignore[arg-type]
        assert isinstance(raised.value, ValueError)


def test_an_input_that_was_never_set(digits: Path) -> None:
    with hoist_runtime.open(digits) as bundle:
        with pytest.raises(ArgumentError, match="image"):
            bundle.run()
        with pytest.raises(ArgumentError, match=r"has the shape \[1, 1, 8, 8\], not \[64\]"):
            bundle.set_input("image", np.zeros(64, np.float32))
        bundle.set_input("image", images(1))
        assert bundle.run()[0].tobytes() == bundle.run()[0].tobytes()


def test_anything_with_an_array_in_it(digits: Path) -> None:
    class Speaks:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

    class SpeaksArray(Speaks):
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return self.array

    class SpeaksDlpack(Speaks):
        def __dlpack__(self, **options: object) -> object:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> object:
            return self.array.__dlpack_device__()

    image = images(1)
    with hoist_runtime.open(digits) as bundle:
        [expected] = bundle.run([image])
        for spoken in (SpeaksArray(image), SpeaksDlpack(image)):
            assert bundle.run([spoken])[0].tobytes() == expected.tobytes()
        with pytest.raises(ArgumentError, match="not int8"):
            bundle.run([SpeaksArray(image.astype(np.int8))])
        assert np.from_dlpack(expected).shape == (1, 10)


def test_shapes_choose_the_specialisation(bundles: Path) -> None:
    four = images(4)
    with hoist_runtime.open(bundles / "sizes.hoist") as bundle:
        assert bundle.specialisations == [{"N": 1}, {"N": 4}] and bundle.specialisation == {"N": 1}
        [together] = bundle.run(image=four)
        assert together.shape == (4, 10) and bundle.specialisation == {"N": 4}
        assert bundle.outputs[0].shape == (4, 10)
        for one, row in zip(four, together):
            np.testing.assert_allclose(bundle.run(image=one[None])[0][0], row, rtol=1e-4, atol=1e-4)
        bundle.choose(N=4)
        with pytest.raises(ArgumentError) as raised:
            bundle.run(image=np.zeros((3, 1, 8, 8), np.float32))
        assert raised.value.status is Status.BAD_SIZE
        with pytest.raises(ArgumentError):
            bundle.choose(N=1, M=2)
        assert bundle.specialisation == {"N": 4}, "a choice that fails changes nothing"
        with pytest.raises(ArgumentError, match="3"):
            bundle.choose(N=3)


def test_shapes_choose_open_sizes(bundles: Path) -> None:
    many = images(64)
    with hoist_runtime.open(bundles / "range.hoist") as bundle:
        [together] = bundle.run(image=many)
        for n in (3, 64, 1, 17):
            [some] = bundle.run(image=many[:n])
            assert some.shape == (n, 10) and bundle.outputs[0].shape == (n, 10)
            assert some.tobytes() == together[:n].tobytes()
        bundle.choose(N=5)
        assert bundle.inputs[0].shape == (5, 1, 8, 8)
        with pytest.raises(ArgumentError, match="takes 1 to 64") as raised:
            bundle.run(image=images(65))
        assert raised.value.status is Status.BAD_SIZE and bundle.inputs[0].shape == (5, 1, 8, 8)


def test_verifies(digits: Path) -> None:
    seen: list[hoist_runtime.Finding] = []
    with hoist_runtime.open(digits) as bundle:
        findings = bundle.verify(seen.append)
        assert findings == seen and all(finding.passed for finding in findings)
        assert {finding.subject.split()[0] for finding in findings} >= {"file", "kernel"}

        def complain(finding: hoist_runtime.Finding) -> None:
            raise KeyError(finding.subject)

        with pytest.raises(KeyError):
            bundle.verify(complain)
    assert all(finding.subject.startswith("file") for finding in hoist_runtime.verify_files(digits))


def test_use_after_close(digits: Path) -> None:
    bundle = hoist_runtime.open(digits)
    bundle.close()
    bundle.close()
    assert bundle.closed and "closed" in repr(bundle)
    for use in (lambda: bundle.run(), lambda: bundle.inputs, lambda: bundle.device, lambda: bundle.verify(),
                lambda: bundle.profile(), lambda: bundle.manifest, lambda: bundle.input_memory("image"),
                lambda: bundle.__enter__(), lambda: bundle.specialisation, lambda: bundle.seed_inputs(1)):
        with pytest.raises(ArgumentError, match="digits.hoist is closed"):
            use()


@pytest.mark.parametrize("name", ["digits.hoist", "sizes.hoist"])
def test_memory_without_copies(bundles: Path, name: str) -> None:
    image = images(1)
    bundle = hoist_runtime.open(bundles / name)
    [expected] = bundle.run([image])
    held, logits = bundle.input_memory("image"), bundle.output_memory("logits")
    assert held.shape == (1, 1, 8, 8) and held.dtype == np.float32 and not logits.flags.writeable
    for scale in (0, 1):
        held[:] = image * scale
        bundle.run()
    assert logits.tobytes() == expected.tobytes()
    # Both outlive the bundle, and a slice keeps the whole array alive.
    part = held[0, 0, 0]
    bundle.close()
    del bundle, held
    gc.collect()
    assert part.tobytes() == image[0, 0, 0].tobytes() and logits.tobytes() == expected.tobytes()
    part[:] = 1


def test_threads_may_share_one(digits: Path) -> None:
    several = images(8)
    with hoist_runtime.open(digits) as bundle:
        expected = [bundle.run(image=image[None])[0].tobytes() for image in several]
        wrong = []

        def work(start: int) -> None:
            for i in range(100):
                k = (start + i) % len(several)
                if bundle.run(image=several[k][None])[0].tobytes() != expected[k]:
                    wrong.append(k)

        workers = [threading.Thread(target=work, args=(start,)) for start in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not wrong


def test_strings(bundles: Path) -> None:
    with hoist_runtime.open(bundles / "text.hoist") as bundle:
        [words] = bundle.inputs
        assert words.scalar == "string" and words.dtype == object
        for given in (["a", "B", "C d"], np.array(["a", "B", "C d"]), np.array([b"a", b"B", b"C d"]),
                      np.array(["a", "B", "C d"], dtype=object)):
            small, number, fits = bundle.run(words=given)
            # The number of strings is dynamic: one of three words is a stop word.
            assert small.tolist() == ["a!", "c d!"] and bundle.outputs[0].shape == (3,)
            assert number.shape == (3,) and fits.dtype == np.bool_
        assert bundle.output("small").tolist() == ["a!", "c d!"]
        small, _, _ = bundle.run(words=["ä\0ö", "", "b"])
        assert "ä\0ö!" in small.tolist()
        with pytest.raises(ArgumentError, match="input words holds strings, not int: 3"):
            bundle.run(words=["a", "b", 3])
        with pytest.raises(ArgumentError, match="not compiled for"):
            bundle.run(words=["a"])
        with pytest.raises(ArgumentError, match="holds strings, which are copied"):
            bundle.input_memory("words")
        assert any(step.on_host for step in bundle.steps)


def test_several_inputs_and_types(bundles: Path) -> None:
    with hoist_runtime.open(bundles / "elements.hoist") as bundle:
        assert len(bundle.inputs) > 1
        bundle.seed_inputs(5)
        outputs = bundle.run()
        assert [(out.dtype, out.shape) for out in outputs] == [(array.dtype, array.shape) for array in bundle.outputs]
        copies = {array.name: bundle.input_memory(array.name).copy() for array in bundle.inputs}
        again = bundle.run(copies)
        assert [out.tobytes() for out in again] == [out.tobytes() for out in outputs]


@pytest.mark.parametrize("file, content", [
    ("plan.bin", b""), ("plan.bin", None), ("weights.bin", b"x"), ("weights.bin", None),
])
def test_damaged_files(copied: Path, file: str, content: bytes | None) -> None:
    damaged = copied / file
    if content is None:
        damaged.unlink()
    else:
        damaged.write_bytes(content)
    with pytest.raises(Error, match=file) as raised:
        hoist_runtime.open(copied)
    assert raised.value.status is Status.BAD_BUNDLE
    with pytest.raises(Error) as raised:
        hoist_runtime.verify_files(copied)
    assert raised.value.status is Status.BAD_BUNDLE


def test_truncated_plans(copied: Path) -> None:
    whole = (copied / "plan.bin").read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 50)):
        (copied / "plan.bin").write_bytes(whole[:length])
        with pytest.raises(Error) as raised:
            hoist_runtime.open(copied)
        assert raised.value.status is Status.BAD_BUNDLE


def test_damage_that_opening_does_not_see(copied: Path) -> None:
    with hoist_runtime.open(copied) as bundle:
        (copied / "expressions.lift").write_text("nothing")
        (copied / "manifest.json").write_text("[")
        with pytest.raises(hoist_runtime.VerificationError) as raised:
            bundle.verify()
        assert "file expressions.lift" in {finding.subject for finding in raised.value.findings if not finding.passed}
        with pytest.raises(Error, match="manifest.json") as unread:
            bundle.manifest
        assert unread.value.status is Status.BAD_BUNDLE


def test_no_bundle_there(tmp_path: Path) -> None:
    with pytest.raises(Error) as raised:
        hoist_runtime.open(tmp_path / "nowhere.hoist")
    assert raised.value.status is Status.BAD_BUNDLE
