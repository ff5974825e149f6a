"""Builds the ONNX graph of a BERT encoder from its weights.

Inputs ``input_ids`` and ``attention_mask`` (int64, ``(texts, tokens)``); output
``last_hidden_state`` (float32, ``(texts, tokens, hidden)``). Matrices become 8 bits in blocks of
128 (``MatMulNBits``): a third faster than 4 bits in blocks of 32 on the CPU, with the same vectors
to four digits. Word vectors are 8 bits with one scale for each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from engine.embed.e5_weights import Floats, Shape, Weights, Words

OPSET = 20
IR_VERSION = 9
BLOCK = 128
HALF = 128
"""Zero point of an 8-bit code."""
INT8_KERNEL = 4
"""``accuracy_level`` that lets MatMulNBits multiply in int8."""
MASKED = -10_000.0

Array = npt.NDArray[np.generic]


class _Graph:
    """Nodes and constants, named by number."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []

    def constant(self, value: Array | Sequence[int]) -> str:
        name = f"c{len(self.constants)}"
        array = np.asarray(value, np.int64) if isinstance(value, Sequence) else value
        self.constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def add(self, kind: str, *inputs: str, domain: str = "", **attributes: int | float) -> str:
        name = f"n{len(self.nodes)}"
        node = helper.make_node(kind, list(inputs), [name], domain=domain)
        node.attribute.extend(
            helper.make_attribute(key, value) for key, value in sorted(attributes.items())
        )
        self.nodes.append(node)
        return name

    def transpose(self, value: str, order: Sequence[int]) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node("Transpose", [value], [name], perm=list(order)))
        return name


def encoder(weights: Weights) -> ModelProto:
    """The model of an encoder whose tensors are named as in the file that ``e5_weights`` reads."""
    graph = _Graph()
    shape, tensors = weights.shape, weights.tensors
    mask = _additive_mask(graph)
    state = _embeddings(graph, weights.words, tensors, shape)
    for layer in range(shape.layers):
        of_layer = {
            key.split(".", 1)[1]: value
            for key, value in tensors.items()
            if key.startswith(f"l{layer}.")
        }
        state = _layer(graph, of_layer, shape, state, mask)
    graph.nodes.append(helper.make_node("Identity", [state], ["last_hidden_state"]))
    return _model(graph, shape)


def _model(graph: _Graph, shape: Shape) -> ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", shape.hidden]
    )
    return helper.make_model(
        helper.make_graph(graph.nodes, "encoder", inputs, [output], graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)],
        ir_version=IR_VERSION,
    )


def _additive_mask(graph: _Graph) -> str:
    """0 where a token counts, a large negative number where it is padding."""
    kept = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    kept = graph.add("Unsqueeze", kept, graph.constant([1, 2]))
    dropped = graph.add("Sub", graph.constant(np.array(1, np.float32)), kept)
    return graph.add("Mul", dropped, graph.constant(np.array(MASKED, np.float32)))


def _embeddings(graph: _Graph, words: Words, tensors: Mapping[str, Floats], shape: Shape) -> str:
    codes = graph.constant(words.codes)
    word = graph.add("Cast", graph.add("Gather", codes, "input_ids"), to=TensorProto.FLOAT)
    scale = graph.add("Gather", graph.constant(words.scales), "input_ids")
    word = graph.add("Mul", word, scale)
    # Every text is segment 0, so its vector is added to the positions once and for all.
    places = graph.constant(tensors["emb.pos"] + tensors["emb.type"][0])
    length = graph.add("Shape", "input_ids", start=1, end=2)
    first = graph.constant([0])
    place = graph.add("Slice", places, first, length, first)
    state = graph.add("Add", word, graph.add("Unsqueeze", place, first))
    return _norm(graph, tensors, "emb.ln", shape, state)


def _layer(
    graph: _Graph, tensors: Mapping[str, Floats], shape: Shape, state: str, mask: str
) -> str:
    context = _attention(graph, tensors, shape, state, mask)
    out = _linear(graph, tensors["ao.w"], tensors["ao.b"], context)
    state = _norm(graph, tensors, "aln", shape, graph.add("Add", state, out))
    inner = graph.add("Gelu", _linear(graph, tensors["fi.w"], tensors["fi.b"], state))
    out = _linear(graph, tensors["fo.w"], tensors["fo.b"], inner)
    return _norm(graph, tensors, "oln", shape, graph.add("Add", state, out))


def _attention(
    graph: _Graph, tensors: Mapping[str, Floats], shape: Shape, state: str, mask: str
) -> str:
    """Multi-head attention; query, key and value share one multiplication."""
    size = shape.hidden // shape.heads
    # The scale of the scores goes into the query's weights.
    scale = np.float32(size**-0.5)
    weight = np.concatenate([tensors["q.w"] * scale, tensors["k.w"], tensors["v.w"]])
    bias = np.concatenate([tensors["q.b"] * scale, tensors["k.b"], tensors["v.b"]])
    joined = graph.add(
        "Reshape", _linear(graph, weight, bias, state), graph.constant([0, 0, 3, shape.heads, size])
    )
    parts = graph.transpose(joined, (2, 0, 3, 1, 4))
    query, key, value = (
        graph.add("Gather", parts, graph.constant(np.array(place, np.int64)), axis=0)
        for place in range(3)
    )
    scores = graph.add("MatMul", query, graph.transpose(key, (0, 1, 3, 2)))
    share = graph.add("Softmax", graph.add("Add", scores, mask), axis=-1)
    context = graph.transpose(graph.add("MatMul", share, value), (0, 2, 1, 3))
    return graph.add("Reshape", context, graph.constant([0, 0, shape.hidden]))


def _linear(graph: _Graph, weight: Floats, bias: Floats, state: str) -> str:
    codes, scales = quantise(weight)
    product = graph.add(
        "MatMulNBits",
        state,
        graph.constant(codes),
        graph.constant(scales.reshape(-1)),
        domain="com.microsoft",
        K=weight.shape[1],
        N=weight.shape[0],
        bits=8,
        block_size=BLOCK,
        accuracy_level=INT8_KERNEL,
    )
    return graph.add("Add", product, graph.constant(bias))


def _norm(graph: _Graph, tensors: Mapping[str, Floats], name: str, shape: Shape, state: str) -> str:
    gain = graph.constant(tensors[f"{name}.w"])
    shift = graph.constant(tensors[f"{name}.b"])
    return graph.add("LayerNormalization", state, gain, shift, axis=-1, epsilon=shape.epsilon)


def quantise(weight: Floats) -> tuple[npt.NDArray[np.uint8], Floats]:
    """8-bit codes ``(out, blocks, 128)`` around 128 and their scales ``(out, blocks)``.

    The width of the matrix must be a multiple of 128.
    """
    blocks = weight.reshape(weight.shape[0], -1, BLOCK)
    scales = np.abs(blocks).max(axis=2) / 127
    scales[scales == 0] = 1
    codes = np.rint(blocks / scales[:, :, None]) + HALF
    return codes.astype(np.uint8), scales.astype(np.float32)
