"""Generate text with a decoder: always the likeliest next token.

FOLDER has the layout of onnxruntime-genai: genai_config.json, tokenizer.json, the model. Needs the
packages armpy-onnx and tokenizers. Usage: python generate.py FOLDER "Once upon a time"
"""

import json
import sys
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

import armpy


def generate(folder: Path, prompt: str, num_tokens: int = 100) -> str:
    """Return a prompt and the tokens that follow, as text."""
    config = json.loads((folder / "genai_config.json").read_text())
    decoder, search = config["model"]["decoder"], config["search"]
    ends = np.atleast_1d(config["model"]["eos_token_id"])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = armpy.load(folder / decoder["filename"])
    wanted = {spec.name for spec in model.inputs}
    tokens = new = tokenizer.encode(prompt).ids
    shares = search.get("past_present_share_buffer", False)
    with model.state(limit=search["max_length"], share_buffers=shares) as state:
        while num_tokens and len(tokens) < search["max_length"] and new[-1] not in ends:
            arrays = {
                "input_ids": np.array([new]),
                "attention_mask": np.ones((1, len(tokens)), np.int64),
                "position_ids": np.arange(state.length, len(tokens))[None],
            }
            named = {decoder["inputs"].get(kind, kind): array for kind, array in arrays.items()}
            outputs = state.run({name: named[name] for name in named.keys() & wanted})
            new = [int(outputs[decoder["outputs"]["logits"]][0, -1].argmax())]
            tokens, num_tokens = tokens + new, num_tokens - 1
    return str(tokenizer.decode(tokens))


if __name__ == "__main__":
    print(generate(Path(sys.argv[1]), sys.argv[2]))
