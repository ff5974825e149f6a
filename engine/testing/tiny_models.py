"""Builds small models of the same form as the real ones: a table of vectors behind a tokenizer.

Their texts are near when they share words, so that a test can tell a right order.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, save_model
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing

from engine.testing.contracts_embed import SENTENCES

DIM = 32
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
WORDS = sorted({word for text in SENTENCES for word in re.findall(r"\w+", text.lower())})
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
VOCABULARY = (*SPECIAL, *WORDS, *LETTERS, *(f"##{letter}" for letter in LETTERS))

Array = npt.NDArray[np.generic]


def table(dim: int = DIM) -> npt.NDArray[np.float32]:
    """One vector for each piece of the vocabulary, always the same; whole words weigh most."""
    drawn = np.random.default_rng(7).standard_normal((len(VOCABULARY), dim))
    weights = [1.0 if piece in WORDS else 0.1 for piece in VOCABULARY]
    found: npt.NDArray[np.float32] = (drawn * np.array(weights)[:, None]).astype(np.float32)
    return found


def write_tokenizer(path: Path) -> None:
    """A WordPiece tokenizer for texts and pairs. It asks for padding, as real files do."""
    places = {piece: place for place, piece in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(places, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(name, places[name]) for name in ("[CLS]", "[SEP]")],
    )
    tokenizer.enable_padding(length=128)
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path))


def write_encoder(path: Path, *, dim: int = DIM, is_pooled: bool = False) -> None:
    """An encoder. ``is_pooled``: also ``sentence_embedding``, and the vectors in a file beside."""
    graph = _Graph(["input_ids", "attention_mask"])
    graph.add("Gather", ["table", "input_ids"], "last_hidden_state")
    outputs: dict[str, list[str | int]] = {"last_hidden_state": ["texts", "tokens", dim]}
    if is_pooled:
        graph.masked_sum("last_hidden_state", "attention_mask", "sentence_embedding")
        outputs["sentence_embedding"] = ["texts", dim]
    _write(path, graph.model(table(dim), outputs), is_external=is_pooled)


def write_cross_encoder(path: Path, *, scale: float = 1.0) -> None:
    """A cross-encoder whose logit grows with the words that both texts hold."""
    graph = _Graph(["input_ids", "attention_mask", "token_type_ids"])
    graph.add("Gather", ["table", "input_ids"], "states")
    graph.add("Mul", ["token_type_ids", "attention_mask"], "second")
    graph.add("Sub", ["attention_mask", "second"], "first")
    graph.masked_sum("states", "first", "query")
    graph.masked_sum("states", "second", "document")
    graph.add("Mul", ["query", "document"], "product")
    graph.add("ReduceSum", ["product", "last"], "sum", keepdims=1)
    graph.add("Mul", ["sum", "scale"], "logits")
    graph.constant("last", np.array([1], np.int64))
    graph.constant("scale", np.array(scale, np.float32))
    _write(path, graph.model(table(), {"logits": ["texts", 1]}), is_external=False)


def write_safetensors(path: Path, tensors: Mapping[str, Array]) -> None:
    """A safetensors file."""
    kinds = {"float32": "F32", "float16": "F16", "int8": "I8", "int64": "I64"}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, tensor in tensors.items():
        raw = tensor.tobytes()
        header[name] = {
            "dtype": kinds[str(tensor.dtype)],
            "shape": list(tensor.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    told = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(told)) + told + body)


class _Graph:
    """Nodes of a model under construction."""

    def __init__(self, inputs: Iterable[str]) -> None:
        self.inputs = list(inputs)
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = {"tokens_axis": np.array([1], np.int64)}

    def add(self, kind: str, inputs: list[str], output: str, **attributes: int) -> None:
        node = helper.make_node(kind, inputs, [output])
        node.attribute.extend(helper.make_attribute(key, attributes[key]) for key in attributes)
        self.nodes.append(node)

    def constant(self, name: str, value: Array) -> None:
        self.constants[name] = value

    def masked_sum(self, states: str, mask: str, output: str) -> None:
        """The sum of the states whose mask is 1."""
        self.constants[f"{output}_axis"] = np.array([2], np.int64)
        self.add("Cast", [mask], f"{output}_kept", to=TensorProto.FLOAT)
        self.add("Unsqueeze", [f"{output}_kept", f"{output}_axis"], f"{output}_mask")
        self.add("Mul", [states, f"{output}_mask"], f"{output}_states")
        self.add("ReduceSum", [f"{output}_states", "tokens_axis"], output, keepdims=0)

    def model(self, vectors: Array, outputs: Mapping[str, list[str | int]]) -> ModelProto:
        self.constants["table"] = vectors
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
            for name in self.inputs
        ]
        given = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in outputs.items()
        ]
        held = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "tiny", inputs, given, held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _write(path: Path, model: ModelProto, *, is_external: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_model(
        model,
        str(path),
        save_as_external_data=is_external,
        location=f"{path.name}_data",
        size_threshold=1024,
    )
