"""Trains a Network: its ONNX nodes are evaluated with JAX, differentiated, and the weights updated in place.

There is one description of each network, the ONNX nodes themselves; a node of an operator that OPERATORS lacks is a
KeyError. BatchNormalization uses the statistics of the batch while training and keeps a running average of them.
"""

from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from jax import lax

from network import Network

Values = dict[str, Any]


def convolution(attributes: Values, x: Any, weight: Any, bias: Any = None) -> Any:
    pads = attributes["pads"]
    half = len(pads) // 2
    y = lax.conv_general_dilated(
        x, weight, attributes["strides"], list(zip(pads[:half], pads[half:])), rhs_dilation=attributes["dilations"],
        dimension_numbers=("NCHW", "OIHW", "NCHW"), feature_group_count=attributes["group"],
    )
    return y if bias is None else y + bias[:, None, None]


def reshape(attributes: Values, x: Any, shape: Any) -> Any:
    return x.reshape([x.shape[axis] if extent == 0 else extent for axis, extent in enumerate(shape)])


def layer_normalization(attributes: Values, x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + attributes["epsilon"]) * scale + bias


# Each takes the node's attributes and its inputs; shapes and axes arrive as NumPy arrays, everything else as JAX's.
OPERATORS: dict[str, Callable[..., Any]] = {
    "Add": lambda attributes, a, b: a + b,
    "Conv": convolution,
    "Flatten": lambda attributes, x: x.reshape(x.shape[0], -1),
    "Gelu": lambda attributes, x: jax.nn.gelu(x, approximate=False),
    "Gemm": lambda attributes, x, weight, bias: x @ weight.T + bias,
    "GlobalAveragePool": lambda attributes, x: x.mean((2, 3), keepdims=True),
    "LayerNormalization": layer_normalization,
    "MatMul": lambda attributes, a, b: a @ b,
    "Mul": lambda attributes, a, b: a * b,
    "ReduceMean": lambda attributes, x, axes: x.mean(tuple(axes), keepdims=bool(attributes["keepdims"])),
    "Relu": lambda attributes, x: jax.nn.relu(x),
    "Reshape": reshape,
    "Softmax": lambda attributes, x: jax.nn.softmax(x, attributes["axis"]),
    "Squeeze": lambda attributes, x, axes: jnp.squeeze(x, tuple(axes)),
    "Transpose": lambda attributes, x: x.transpose(attributes["perm"]),
}


def batch_normalization(node: onnx.NodeProto, epsilon: float, values: Values, statistics: Values) -> Any:
    """Normalises by the batch and puts the moved running averages into `statistics`."""
    x, scale, bias, running_mean, running_variance = (values[name] for name in node.input)
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    statistics[node.input[3]] = 0.95 * running_mean + 0.05 * mean
    statistics[node.input[4]] = 0.95 * running_variance + 0.05 * variance
    factor = scale / jnp.sqrt(variance + epsilon)
    return (x - mean[:, None, None]) * factor[:, None, None] + bias[:, None, None]


def forward(network: Network, parameters: Values, inputs: Values) -> tuple[Any, Values]:
    """Evaluates the network in training mode: its first output, and the new running statistics."""
    values: Values = {**parameters, **inputs}
    statistics: Values = {}
    for node in network.nodes:
        attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        if node.op_type == "BatchNormalization":
            result = batch_normalization(node, attributes["epsilon"], values, statistics)
        else:
            result = OPERATORS[node.op_type](attributes, *(values[name] for name in node.input))
        values[node.output[0]] = result
    return values[network.outputs[0].name], statistics


def shifted(images: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Shifts each image of [N][C][H][W] by up to one pixel in each direction and fills with zeros."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width = images.shape[2:]
    moves = random.integers(0, 3, (len(images), 2))
    return np.stack([picture[:, y : y + height, x : x + width] for picture, (y, x) in zip(padded, moves)])


def train(network: Network, images: np.ndarray, labels: np.ndarray, epochs: int, rate: float, seed: int,
          shift: bool = False, batch: int = 100, decay: float = 1e-2) -> float:
    """Adam with decoupled weight decay and a cosine rate on the cross-entropy; returns the last epoch's mean loss.

    Parameters change in `network`. An epoch omits incomplete batches, has its own order, and with `shift` moves
    each image by up to one pixel.
    """
    input_name = network.inputs[0].name
    fixed = {name: value for name, value in network.parameters.items() if value.dtype == np.int64}
    moving = {name: jnp.asarray(network.parameters[name]) for name in network.constants - fixed.keys()}
    trained = {name: jnp.asarray(value) for name, value in network.parameters.items()
               if name not in network.constants}
    steps_per_epoch = len(images) // batch
    steps = epochs * steps_per_epoch

    def loss(trained: Values, moving: Values, x: Any, y: Any) -> tuple[Any, Values]:
        logits, statistics = forward(network, {**fixed, **moving, **trained}, {input_name: x})
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1)
        return -chosen.mean(), statistics

    @jax.jit
    def step(trained: Values, moving: Values, first: Values, second: Values, count: Any, x: Any, y: Any) -> Any:
        (value, statistics), gradient = jax.value_and_grad(loss, has_aux=True)(trained, moving, x, y)
        now = rate * 0.5 * (1 + jnp.cos(jnp.pi * count / steps))
        first = {name: 0.9 * first[name] + 0.1 * gradient[name] for name in first}
        second = {name: 0.99 * second[name] + 0.01 * gradient[name] ** 2 for name in second}

        def updated(name: str) -> Any:
            size = first[name] / (1 - 0.9 ** (count + 1))
            spread = jnp.sqrt(second[name] / (1 - 0.99 ** (count + 1))) + 1e-8
            shrink = decay if trained[name].ndim > 1 else 0.0  # biases and scales are not shrunk
            return trained[name] - now * (size / spread + shrink * trained[name])

        return {name: updated(name) for name in trained}, {**moving, **statistics}, first, second, value

    random = np.random.default_rng(seed)
    first = {name: jnp.zeros_like(value) for name, value in trained.items()}
    second, count, mean = first, 0, 0.0
    for _ in range(epochs):
        order = random.permutation(len(images))
        losses = []
        for start in range(0, steps_per_epoch * batch, batch):
            chosen = order[start : start + batch]
            pictures = shifted(images[chosen], random) if shift else images[chosen]
            trained, moving, first, second, value = step(
                trained, moving, first, second, float(count), pictures, labels[chosen])
            losses.append(value)
            count += 1
        mean = float(np.mean(losses))
    for name, value in {**trained, **moving}.items():
        network.parameters[name] = np.asarray(value, np.float32)
    return mean
