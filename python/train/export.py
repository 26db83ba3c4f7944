"""Writes a release folder: bf16 weights by their published names, configurations, tokenizer."""

import json
import math
import shutil

import torch
from safetensors.torch import load_file, save_file

import release
from model import TrebleTiny


def write(model, tokenizer, out):
    """model: TrebleTiny; tokenizer: folder with its two files; out: folder to make."""
    out.mkdir(parents=True, exist_ok=True)
    rounded = lambda module: {name: weight.detach().to("cpu", torch.bfloat16).contiguous()
                              for name, weight in module.state_dict().items()}
    save_file(rounded(model.backbone), out / "model.safetensors", metadata={"format": "pt"})
    save_file(rounded(model.head), out / "joint_head.safetensors", metadata={"format": "pt"})
    for name, content in (("config.json", release.CONFIG), ("joint_head_config.json", release.HEAD),
                          ("processor_config.json", release.PROCESSOR), ("generation_config.json", release.GENERATION)):
        (out / name).write_text(json.dumps(content, indent=2) + "\n")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if tokenizer.resolve() != out.resolve():
            shutil.copyfile(tokenizer / name, out / name)


@torch.no_grad()
def divide_logits(model, temperature):
    """Changes the head so that every logit becomes itself / temperature; exact but for rounding, and for scales at their cap."""
    head, scale = model.head, 1 / temperature
    for exponent in (head.prior_logit_scale, head.joint_logit_scale):
        exponent += math.log(scale)
    head.residual_scorer[3].weight *= scale
    head.residual_scorer[3].bias *= scale


def read(folder):
    """A release folder -> TrebleTiny with its weights widened to fp32."""
    model = TrebleTiny(json.loads((folder / "config.json").read_text()), json.loads((folder / "joint_head_config.json").read_text()))
    model.backbone.load_state_dict({name: weight.float() for name, weight in load_file(folder / "model.safetensors").items()})
    model.head.load_state_dict({name: weight.float() for name, weight in load_file(folder / "joint_head.safetensors").items()})
    return model
