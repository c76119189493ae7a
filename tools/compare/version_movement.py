"""Definitions of versions.py for operators that move elements: shapes, parts, borders, resampling, gathering."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from version_cases import F16, F32, F64, I32, I64, Array, Case, Random, reference, versions


@versions("Concat", 1, 4, 11)
def concat(r: Random, opset: int, name: str) -> Case:
    # Version 1: "Which axis to concat on. Default value is 1."
    shape = list(r.shape(2 if opset < 4 else 1, 4))
    axis = r.integer(0, len(shape) - 1)
    attributes = {"axis": axis - len(shape) if opset >= 11 and r.chance(0.4) else axis}
    if opset < 4 and r.chance(0.5):
        axis, attributes = 1, {}
    parts = []
    for _ in range(r.integer(1, 3)):
        shape[axis] = r.integer(1, 4)
        parts.append(r.array(F32, *shape))
    return Case(name, opset, parts, attributes, [np.concatenate(parts, axis)])


@versions("Pad", 1, 2, 11, 13, 18, 19)
def pad(r: Random, opset: int, name: str) -> Case:
    kind = r.pick([F32, F64, F16] if opset < 11 else [F32, F64, F16, I32, I64])
    x = r.array(kind, *r.shape(1, 4))
    mode = r.pick(["constant", "constant", "edge", "reflect"] + (["wrap"] if opset >= 19 else []))
    axes = list(range(x.ndim))
    if opset >= 18 and r.chance(0.4):
        axes = [axis for axis in axes if r.chance(0.6)] or [0]
    pads = [[r.integer(0, min(2, x.shape[axis] - 1) if mode != "constant" else 2) for axis in axes] for _ in range(2)]
    if mode == "constant" and r.chance(0.3) and x.shape[axes[0]] > 1:
        pads[0][0] = -1
    value = r.pick([0, 2])
    amounts = [(0, 0)] * x.ndim
    cut: Any = x
    for axis, before, after in zip(axes, *pads):
        cut = np.take(cut, range(max(-before, 0), cut.shape[axis]), axis)
        amounts[axis] = (max(before, 0), after)
    y = np.pad(cut, amounts, mode, **({"constant_values": value} if mode == "constant" else {}))
    attributes: dict[str, Any] = {"mode": mode}
    if opset < 11:
        attributes["paddings" if opset < 2 else "pads"] = pads[0] + pads[1]
        if value:
            attributes["value"] = float(value)
        return Case(name, opset, [x], attributes, [y])
    inputs: list[Array | None] = [x, np.array(pads[0] + pads[1], I64), np.array(value, kind) if value else None]
    if len(axes) < x.ndim:
        inputs.append(np.array(axes, I64))
    return Case(name, opset, inputs, attributes, [y], (1, 3))


@versions("Reshape", 1, 5, 14)
def reshape(r: Random, opset: int, name: str) -> Case:
    # "A dimension could also be 0, in which case the actual dimension value is unchanged"
    x = r.array(r.pick([F32, F64]), *r.shape(2, 4))
    target = [0, -1] if r.chance(0.5) else [-1, x.shape[-1]]
    y = x.reshape(x.shape[0], -1) if target[0] == 0 else x.reshape(target)
    if opset < 5:
        return Case(name, opset, [x], {"shape": target}, [y])
    return Case(name, opset, [x, np.array(target, I64)], {}, [y], (1,))


def resampled(x: Array, scales: list[float], linear: bool) -> Array:
    """Positions of the output by the scale; the nearest element is the one at or before it."""
    y = x.astype(F64)
    for axis, scale in enumerate(scales):
        n = x.shape[axis]
        if scale == 1:
            continue
        places = np.arange(int(np.floor(n * F32(scale)))) / F64(F32(scale))
        low = np.clip(np.floor(places + (0 if linear else 1e-9)).astype(int), 0, n - 1)
        weight = np.clip(places - low, 0, 1) if linear else np.zeros(len(places))
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        weight = weight.reshape(shape)
        y = np.take(y, low, axis) * (1 - weight) + np.take(y, np.minimum(low + 1, n - 1), axis) * weight
    return y.astype(x.dtype)


@versions("Upsample", 1, 7, 9)
def upsample(r: Random, opset: int, name: str) -> Case | None:
    # "output_dimension = floor(input_dimension * scale)"; the example of version 1 repeats each element scale times.
    if opset > 9:
        return None
    linear = r.chance(0.5)
    if opset < 7:
        x, scales = r.array(F32, *[r.integer(1, 4) for _ in range(4)]), [1.0, 1.0, r.pick([1.0, 2.0, 3.0]), r.pick([2.0, 1.5])]
        return Case(name, opset, [x], {"height_scale": scales[2], "width_scale": scales[3],
                                       "mode": "bilinear" if linear else "nearest"}, [resampled(x, scales, linear)])
    x = r.array(F32, *r.shape(3, 4))
    scales = [1.0, 1.0] + [r.pick([1.0, 1.5, 2.0, 3.0, 2.25]) for _ in range(x.ndim - 2)]
    attributes: dict[str, Any] = {"mode": "linear" if linear else "nearest"}
    if opset < 9:
        return Case(name, opset, [x], {**attributes, "scales": scales}, [resampled(x, scales, linear)])
    return Case(name, opset, [x, np.array(scales, F32)], attributes, [resampled(x, scales, linear)], (1,))


@versions("Resize", 10, 11, 13, 18, 19)
def resize(r: Random, opset: int, name: str) -> Case | None:
    x = r.array(F32, *r.shape(3, 4))
    scales = [1.0, 1.0] + [r.pick([0.5, 1.0, 1.5, 2.0, 3.0]) for _ in range(x.ndim - 2)]
    if any(np.floor(n * s) < 1 for n, s in zip(x.shape, scales)):
        return None
    linear = r.chance(0.5)
    attributes: dict[str, Any] = {"mode": "linear" if linear else "nearest"}
    if opset < 11:
        return Case(name, opset, [x, np.array(scales, F32)], attributes, [resampled(x, scales, linear)], (1,))
    coordinates = r.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
                         + (["half_pixel_symmetric"] if opset >= 19 else []))
    attributes["coordinate_transformation_mode"] = coordinates
    if not linear:
        attributes["nearest_mode"] = r.pick(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    if opset < 13 and not linear and r.chance(0.4):
        # tf_half_pixel_for_nn: x_original = (x_resized + 0.5) / x_scale
        attributes.update(coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor")
        y = x
        for axis, scale in enumerate(scales):
            places = np.floor((np.arange(int(y.shape[axis] * scale)) + 0.5) / scale + 1e-9).astype(int)
            y = np.take(y, np.clip(places, 0, x.shape[axis] - 1), axis)
        return Case(name, opset, [x, np.zeros(0, F32), np.array(scales, F32)], attributes, [y], (1, 2))
    inputs: list[Array | None] = [x, np.zeros(0, F32) if opset < 13 else None, np.array(scales, F32)]
    y = reference("Resize", 19, [x, None, np.array(scales, F32)], attributes)[0]
    return Case(name, opset, inputs, attributes, [y.astype(F32)], (1, 2))


@versions("RoiAlign", 10, 16)
def regions(r: Random, opset: int, name: str) -> Case:
    # Before version 16 nothing is shifted by half a pixel; since then the mode output_half_pixel asks for that.
    x = r.array(F32, 2, 2, 6, 6)
    rois = np.array([[0.5, 0.5, 4.25, 5.0], [1, 0.25, 5.5, 3.75]], F32)
    batch = np.array([r.integer(0, 1), r.integer(0, 1)], I64)
    attributes: dict[str, Any] = {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 1.0}
    mode = "output_half_pixel" if opset < 16 else r.pick(["half_pixel", "output_half_pixel"])
    y = reference(name, 16, [x, rois, batch], {**attributes, "coordinate_transformation_mode": mode})[0]
    if opset >= 16 and (mode != "half_pixel" or r.chance(0.5)):
        attributes["coordinate_transformation_mode"] = mode
    return Case(name, opset, [x, rois, batch], attributes, [y])


@versions("Scatter ScatterElements", 9, 11, 16, 18)
def scatter(r: Random, opset: int, name: str) -> Case | None:
    if opset > 10 and name == "Scatter" or opset < 11 and name != "Scatter":
        return None
    x = r.array(F32, *r.shape(1, 3))
    axis = r.integer(0, x.ndim - 1)
    places = r.array(I64, *x.shape, low=0, high=x.shape[axis] - 1)
    places = np.argsort(np.argsort(places, axis), axis).astype(I64)  # each once
    attributes: dict[str, Any] = {} if axis == 0 and r.chance(0.5) else {"axis": axis}
    updates = r.array(F32, *x.shape)
    if opset >= 16 and r.chance(0.5):
        attributes["reduction"] = r.pick(["add", "mul"] + (["max", "min"] if opset >= 18 else []))
    y = reference("ScatterElements", 18, [x, places, updates], attributes)[0]
    return Case(name, opset, [x, places, updates], attributes, [y])


@versions("Slice", 1, 10, 11, 13)
def cut(r: Random, opset: int, name: str) -> Case:
    x = r.array(r.pick([F32, F64]), *r.shape(1, 4, 6))
    axes = [axis for axis in range(x.ndim) if r.chance(0.6)] or [0]
    starts = [r.integer(-x.shape[axis], x.shape[axis] - 1) for axis in axes]
    ends = [r.pick([x.shape[axis], 1000, x.shape[axis] - 1]) for axis in axes]
    steps = [1] * len(axes)
    if opset >= 10 and r.chance(0.4):
        steps = [r.pick([1, 2]) for _ in axes]
    y = x
    for axis, start, end, step in zip(axes, starts, ends, steps):
        y = y[(slice(None),) * axis + (slice(start, end, step),)]
    named: list[int] | None = axes if axes != list(range(len(axes))) or r.chance(0.5) else None
    if opset < 10:
        return Case(name, opset, [x], {"starts": starts, "ends": ends, **({} if named is None else {"axes": named})}, [y])
    if opset >= 11 and named is not None and r.chance(0.4):
        named = [axis - x.ndim for axis in axes]
    kind = r.pick([I32, I64])
    lists = [starts, ends, named if named is not None else None, steps if named is not None else None]
    if named is None and steps != [1] * len(axes):
        lists[2:] = [axes, steps]
    return Case(name, opset, [x, *[None if v is None else np.array(v, kind) for v in lists]], {}, [y], (1, 2, 3, 4))


@versions("Split", 1, 2, 11, 13, 18)
def split(r: Random, opset: int, name: str) -> Case | None:
    x = r.array(F32, *r.shape(1, 3, 6))
    axis = r.integer(0, x.ndim - 1)
    n, parts = x.shape[axis], r.integer(1, 3)
    attributes: dict[str, Any] = {"axis": axis - x.ndim if opset >= 11 and r.chance(0.4) else axis}
    inputs: list[Array | None] = [x]
    if r.chance(0.5) and n >= parts:
        sizes = [1] * (parts - 1) + [n - parts + 1]
        if opset < 2 and r.chance(0.5) or opset >= 13:
            inputs.append(np.array(sizes, F32 if opset < 2 else I64))
        else:
            attributes["split"] = sizes
    else:
        if n % parts and opset < 18:
            return None
        each = -(-n // parts)
        sizes = [max(0, min(each, n - i * each)) for i in range(parts)]
        if opset >= 18:
            attributes["num_outputs"] = parts
            if 0 in sizes:
                return None
    return Case(name, opset, inputs, attributes, list(np.split(x, np.cumsum(sizes)[:-1], axis)), (1,))


@versions("Squeeze Unsqueeze", 1, 11, 13)
def squeeze(r: Random, opset: int, name: str) -> Case:
    x = r.array(r.pick([F32, F64]), *r.shape(1, 3))
    axes = sorted(set(r.integer(0, x.ndim) for _ in range(r.integer(1, 2))))
    y = np.expand_dims(x, tuple(axes))
    given = [axis - y.ndim if opset >= 11 and r.chance(0.4) else axis for axis in axes]
    if name == "Squeeze":
        x, y = y, x
    if opset < 13:
        return Case(name, opset, [x], {"axes": given}, [y])
    return Case(name, opset, [x, np.array(given, I64)], {}, [y], (1,))


@versions("Tile", 1, 6)
def tile(r: Random, opset: int, name: str) -> Case:
    # Version 1: "Repeat the elements of a tensor along an axis", tiles: "Number of repeated copies to make".
    x = r.array(F32, *r.shape(1, 4, 4))
    if opset < 6:
        axis, tiles = r.integer(0, x.ndim - 1), r.integer(1, 3)
        y = np.concatenate([x] * tiles, axis)
        return Case(name, opset, [x, np.array(tiles, F32).reshape(r.pick([(), (1,)])), np.array(axis, F32).reshape(
            r.pick([(), (1,)]))], {}, [y], (1, 2))
    repeats = np.array([r.integer(1, 3) for _ in range(x.ndim)], I64)
    return Case(name, opset, [x, repeats], {}, [np.tile(x, repeats)], (1,))


@versions("Shape", 1, 13, 15)
def shape_of(r: Random, opset: int, name: str) -> Case:
    x = r.array(F32, *r.shape(0, 4))
    attributes = {} if opset < 15 or r.chance(0.3) else {"start": r.integer(-2, 2), "end": r.integer(-2, 4)}
    y = np.array(x.shape, I64)
    if attributes:
        low, high = (min(max(v + x.ndim if v < 0 else v, 0), x.ndim) for v in (attributes["start"], attributes["end"]))
        y = y[low:high]
    return Case(name, opset, [x], attributes, [y])


@versions("DepthToSpace SpaceToDepth", 1, 11, 13, 28)
def depth(r: Random, opset: int, name: str) -> Case:
    block, n, c, h, w = r.integer(1, 3), r.integer(1, 2), r.integer(1, 2), r.integer(1, 3), r.integer(1, 3)
    attributes: dict[str, Any] = {"blocksize": block}
    has_mode = opset >= (11 if name == "DepthToSpace" else 28) and r.chance(0.6)
    mode = r.pick(["DCR", "CRD"]) if has_mode else "DCR"
    if has_mode:
        attributes["mode"] = mode
    if name == "DepthToSpace":
        x = r.array(F32, n, c * block * block, h, w)
        parts = x.reshape((n, block, block, c, h, w) if mode == "DCR" else (n, c, block, block, h, w))
        y = parts.transpose((0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)).reshape(n, c, h * block, w * block)
        return Case(name, opset, [x], attributes, [y])
    x = r.array(F32, n, c, h * block, w * block)
    parts = x.reshape(n, c, h, block, w, block)
    y = parts.transpose((0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)).reshape(n, c * block * block, h, w)
    return Case(name, opset, [x], attributes, [y])


@versions("Gather", 1, 11, 13)
def gather(r: Random, opset: int, name: str) -> Case:
    x = r.array(F32, *r.shape(1, 4))
    axis = r.integer(-x.ndim, x.ndim - 1)
    places = r.array(r.pick([I32, I64]), *r.shape(0, 2), low=0 if opset < 11 else -x.shape[axis], high=x.shape[axis] - 1)
    return Case(name, opset, [x, places], {"axis": axis}, [np.take(x, places, axis)])


@versions("Flatten", 1, 9, 11)
def flatten(r: Random, opset: int, name: str) -> Case:
    x = r.array(F32, *r.shape(1, 4))
    axis = r.integer(-x.ndim if opset >= 11 else 0, x.ndim)
    attributes = {} if axis == 1 and r.chance(0.5) else {"axis": axis}
    return Case(name, opset, [x], attributes, [x.reshape(int(np.prod(x.shape[:axis])), -1)])


@versions("Scan", 8, 9)
def scan(r: Random, opset: int, name: str) -> Case | None:
    # 8: "The operation supports batching, and the batch-axis is required to be 0."
    steps, size, batch = r.integer(1, 4), r.integer(1, 3), r.integer(1, 3)
    info = onnx.helper.make_tensor_value_info
    parts = [info(n, onnx.TensorProto.FLOAT, [size]) for n in ("s", "e", "t", "o")]
    body = onnx.helper.make_graph([onnx.helper.make_node("Add", ["s", "e"], ["t"]),
                                   onnx.helper.make_node("Mul", ["t", "e"], ["o"])], "body", parts[:2], parts[2:])
    backwards = r.chance(0.4)
    state, x = r.array(F32, batch, size), r.array(F32, batch, steps, size)
    t, rows = state, []
    for i in reversed(range(steps)) if backwards else range(steps):
        t = t + x[:, i]
        rows.append(t * x[:, i])
    attributes: dict[str, Any] = {"body": body, "num_scan_inputs": 1}
    if backwards:
        attributes["directions" if opset < 9 else "scan_input_directions"] = [1]
    if opset < 9:
        return Case(name, opset, [None, state, x], attributes, [t, np.stack(rows, 1)])
    return Case(name, opset, [state[0], x[0]], attributes, [t[0], np.stack(rows, 1)[0]])


@versions("GridSample", 16, 20)
def sampled(r: Random, opset: int, name: str) -> Case:
    # 16: "bilinear (default), nearest and bicubic"; 20: "linear (default), nearest and cubic".
    x = r.array(F32, 1, 2, r.integer(2, 5), r.integer(2, 5))
    grid = r.array(F32, 1, 3, 2, 2, low=-1, high=1)
    mode = r.pick(["linear", "cubic"])
    attributes = {"align_corners": r.integer(0, 1), "padding_mode": r.pick(["zeros", "border", "reflection"])}
    y = reference(name, 20, [x, grid], {**attributes, "mode": mode})[0]
    if mode == "cubic" or r.chance(0.5):
        attributes["mode"] = mode if opset >= 20 else "bi" + mode
    return Case(name, opset, [x, grid], attributes, [y])
