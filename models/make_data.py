"""Turns IDX files, CIFAR-10 binaries and folders of images into the .npz data that hoist reads.

    python make_data.py idx t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz --input Input3 -o mnist.npz
    python make_data.py cifar10 data_batch_1.bin.gz --input input --count 500 -o cifar10.npz
    python make_data.py images FOLDER --input image --resize 256 --crop 224 --scale 0.00392157 \\
        --mean 0.485 0.456 0.406 --deviation 0.229 0.224 0.225 -o images.npz

A value becomes (pixel * scale - mean) / deviation, float32; pixels are 0 to 255. The .npz contains one array with the name of
the model's input, whose leading axis runs over samples, and `labels` (int64) if the source has them. Files may be
gzipped. Labels of images are the numbers of their folders (in alphabetical order), or the match of --label-pattern in
the file name.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

# The third byte of an IDX file's magic number; numbers are big-endian.
IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm"}


class BadData(Exception):
    """A fault of a file, in one line."""


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is gzipped."""
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def read_idx(path: Path) -> np.ndarray:
    """An array of the file's own type and shape."""
    data = read_bytes(path)
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in IDX_TYPES:
        raise BadData(f"{path} is not an IDX file: it starts with {data[:4].hex()}")
    rank = data[3]
    if len(data) < 4 + 4 * rank:
        raise BadData(f"{path} ends within its header")
    shape = tuple(int(extent) for extent in np.frombuffer(data, ">u4", rank, 4))
    kind = np.dtype(IDX_TYPES[data[2]])
    body = data[4 + 4 * rank :]
    wanted = int(np.prod(shape, dtype=object)) * kind.itemsize
    if len(body) != wanted:
        raise BadData(f"{path} has {len(body)} bytes of data; its shape {shape} needs {wanted}")
    return np.frombuffer(body, kind).reshape(shape)


def idx_images(path: Path, labels: Path | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Images [N][H][W][1] and labels [N]."""
    images = read_idx(path)
    if images.ndim not in (3, 4):
        raise BadData(f"{path} has {images.ndim} dimensions; images have 3 or 4")
    if images.ndim == 3:
        images = images[..., None]
    if labels is None:
        return images, None
    numbers = read_idx(labels)
    if numbers.shape != images.shape[:1]:
        raise BadData(f"{labels} has shape {numbers.shape}, {path} holds {len(images)} images")
    return images, numbers


def cifar10_images(paths: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Images [N][32][32][3] and labels [N] of CIFAR-10's binary files, one after the other."""
    records = []
    for path in paths:
        data = np.frombuffer(read_bytes(path), np.uint8)
        if data.size == 0 or data.size % 3073:
            raise BadData(f"{path} has {data.size} bytes; CIFAR-10 records have 3073 each")
        records.append(data.reshape(-1, 3073))
    whole = np.concatenate(records)
    return whole[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), whole[:, 0]


def image_files(folder: Path, pattern: str | None) -> tuple[list[Path], list[int] | None]:
    """The image files below a folder, in alphabetical order, with their labels."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGES)
    if not files:
        raise BadData(f"{folder} holds no images ({', '.join(sorted(IMAGES))})")
    if pattern is not None:
        expression = re.compile(pattern)
        found = [expression.search(path.name) for path in files]
        if not expression.groups:
            raise BadData(f"--label-pattern {pattern} has no group that gives the position of the label")
        named = [(path, int(match.group(1))) for path, match in zip(files, found) if match]
        if not named:
            raise BadData(f"--label-pattern {pattern} matches none of {len(files)} file names")
        return [path for path, _ in named], [label for _, label in named]
    if any(path.parent == folder for path in files):
        return files, None  # a flat folder: no classes
    classes = sorted({path.relative_to(folder).parts[0] for path in files})
    return files, [classes.index(path.relative_to(folder).parts[0]) for path in files]


def load_image(path: Path, grey: bool, resize: list[int] | None, crop: list[int] | None) -> np.ndarray:
    """[H][W][C] bytes: the shorter side resized to one number, or to height and width; then cropped to the centre."""
    try:
        image = Image.open(path).convert("L" if grey else "RGB")
    except OSError as error:
        raise BadData(f"{path} is not a readable image: {error}") from error
    if resize:
        width, height = image.size
        if len(resize) == 1:
            factor = resize[0] / min(width, height)
            target = (max(resize[0], round(width * factor)), max(resize[0], round(height * factor)))
        else:
            target = (resize[1], resize[0])
        image = image.resize(target, Image.Resampling.BILINEAR)
    if crop:
        height, width = crop[0], crop[-1]
        if width > image.width or height > image.height:
            raise BadData(f"{path} is {image.width}x{image.height}, smaller than the crop of {width}x{height}")
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
    pixels = np.asarray(image)
    return pixels[..., None] if grey else pixels


def folder_images(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray | None]:
    """The part of a folder that --offset and --count select, so that the rest is not read."""
    files, labels = image_files(options.source, options.label_pattern)
    part = slice(options.offset, None if options.count is None else options.offset + options.count)
    files, labels = files[part], labels if labels is None else labels[part]
    images = [load_image(path, options.grey, options.resize, options.crop) for path in files]
    shapes = {image.shape for image in images}
    if len(shapes) > 1:
        raise BadData(f"images differ in size, {sorted(shapes)[:3]} for instance; give --crop, or --resize H W")
    return np.stack(images) if images else np.zeros((0, 1, 1, 1)), None if labels is None else np.array(labels)


def normalized(images: np.ndarray, options: argparse.Namespace) -> np.ndarray:
    """Float32 values in the requested layout from pixels [N][H][W][C]."""
    channels = images.shape[-1]
    for name in ("mean", "deviation"):
        if len(getattr(options, name)) not in (1, channels):
            raise BadData(f"--{name} has {len(getattr(options, name))} numbers, the images {channels} channels")
    scale, mean, deviation = (np.asarray(x, np.float32) for x in (options.scale, options.mean, options.deviation))
    if options.bgr:
        images = images[..., ::-1]
    values = (images.astype(np.float32) * scale - mean) / deviation
    if options.layout == "nchw":
        values = values.transpose(0, 3, 1, 2)
    elif options.layout == "flat":
        values = values.reshape(len(values), -1)
    return np.ascontiguousarray(values)


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Like numpy.savez_compressed, which cannot write an array called "file" and changes the names of files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, so that equal data give equal bytes
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def parse() -> argparse.Namespace:
    program = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-o", "--output", type=Path, required=True, help="the .npz to write")
    common.add_argument("--input", required=True, help="name of the model's input, and of the array")
    common.add_argument("--scale", type=float, default=1.0, help="factor of a pixel")
    common.add_argument("--mean", type=float, nargs="+", default=[0.0], help="subtracted: one number or one per channel")
    common.add_argument("--deviation", type=float, nargs="+", default=[1.0], help="divided by, like --mean")
    common.add_argument("--layout", choices=("nchw", "nhwc", "flat"), default="nchw", help="order of a sample's axes")
    common.add_argument("--bgr", action="store_true", help="blue first (--mean and --deviation then too)")
    common.add_argument("--count", type=int, help="maximum number of samples")
    common.add_argument("--offset", type=int, default=0, help="number of samples to skip")
    kinds = program.add_subparsers(dest="kind", required=True)
    idx = kinds.add_parser("idx", parents=[common], help="MNIST's format")
    idx.add_argument("source", type=Path)
    idx.add_argument("--labels", type=Path, help="the IDX file of the labels")
    cifar10 = kinds.add_parser("cifar10", parents=[common], help="CIFAR-10's binary format")
    cifar10.add_argument("source", type=Path, nargs="+")
    images = kinds.add_parser("images", parents=[common], help="a folder of images, or one folder per class")
    images.add_argument("source", type=Path)
    images.add_argument("--resize", type=int, nargs="+", help="the shorter side, or height and width")
    images.add_argument("--crop", type=int, nargs="+", help="side, or height and width, of the middle to keep")
    images.add_argument("--grey", action="store_true", help="one channel")
    images.add_argument("--label-pattern", help=r"regular expression whose first group is the label, '_(\d+)\.'")
    options = program.parse_args()
    if options.offset < 0 or (options.count is not None and options.count < 1):
        program.error("--offset is 0 or more, --count 1 or more")
    for name in ("resize", "crop"):
        extents = getattr(options, name, None)
        if extents and (len(extents) > 2 or min(extents) < 1):
            program.error(f"--{name} takes one or two positive numbers")
    return options


def main() -> int:
    options = parse()
    try:
        if options.kind == "images":
            images, labels = folder_images(options)
        else:
            if options.kind == "idx":
                images, labels = idx_images(options.source, options.labels)
            else:
                images, labels = cifar10_images(options.source)
            part = slice(options.offset, None if options.count is None else options.offset + options.count)
            images, labels = images[part], labels if labels is None else labels[part]
        if not len(images):
            raise BadData(f"no samples are left after --offset {options.offset}")
        if options.input == "labels" and labels is not None:
            raise BadData("the input cannot be called labels: that array holds the labels")
        arrays = {options.input: normalized(images, options)}
        if labels is not None:
            arrays["labels"] = labels.astype(np.int64)
        write_npz(options.output, arrays)
    except (BadData, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    print(f"{options.output}: " + ", ".join(f"{name} {list(x.shape)} {x.dtype}" for name, x in arrays.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
