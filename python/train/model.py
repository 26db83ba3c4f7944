"""treble-tiny in PyTorch, for training: the backbone of the published releases and the joint schema head over packed rows.

Modules carry the tensor names of the release, so a state dict is a checkpoint. Definitions: docs/model.md. check_model.py compares
this with transformers.

A batch is B rows of T tokens; several records stand in one row, told apart by `segments`. Nothing crosses a border between
records: attention is masked, the convolution and the delta rule start anew.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

import encode
from delta_rule import gated_delta_rule


class Batch(NamedTuple):
    """What the model reads. B rows, T tokens, Q question and O option places a row, V rows of W patches."""
    ids: torch.Tensor                      # [B, T] int
    segments: torch.Tensor                 # [B, T] int; which record of the row; -1 behind the last
    positions: torch.Tensor                # [3, B, T] int
    media_rows: torch.Tensor               # [B, T] int; row of the vision tower's output, or -1
    learned: torch.Tensor                  # [B, L] int; different tokens of the row that next-token prediction learns ...
    learned_kinds: torch.Tensor            # [B, L] int; ... as encode.SAID or encode.ANSWER, or not at all (0)
    patches: torch.Tensor                  # [V, W, 1536] u8 levels
    patch_segments: torch.Tensor           # [V, W] int; which image or frame group; -1 unused
    patch_places: torch.Tensor             # [V, W, 2] int; patch row and column
    patch_taps: torch.Tensor               # [V, W, 4] int; rows of the position table
    patch_weights: torch.Tensor            # [V, W, 4] float
    question_spans: torch.Tensor           # [B, Q, 2] int
    question_types: torch.Tensor           # [B, Q] int
    question_last: torch.Tensor            # [B, Q] int; last token of the question's record
    option_spans: torch.Tensor             # [B, O, 2] int
    option_owner: torch.Tensor             # [B, O] int; the option's question, -1 unused
    answers: torch.Tensor                  # [B, Q] int; the right option's place, -1 unused


# ---- text ------------------------------------------------------------------------------------------------------------

class ZeroCentredNorm(nn.Module):
    """RMSNorm whose stored weight is added to 1."""

    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(width)), eps

    def forward(self, x):
        x = x.float()
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * (1 + self.weight)


class Rotary(nn.Module):
    """Interleaved M-RoPE tables: positions [3, B, T] -> cos, sin [B, T, 1, rotary width]."""

    def __init__(self, config):
        super().__init__()
        rope = config["rope_parameters"]
        width = int(config["head_dim"] * rope["partial_rotary_factor"])
        frequencies = 1 / rope["rope_theta"] ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
        axis = torch.zeros(width // 2, dtype=torch.long)
        for i, section in enumerate(rope["mrope_section"][1:], 1):
            axis[i:3 * section:3] = i
        self.register_buffer("frequencies", frequencies.float(), persistent=False)
        self.register_buffer("axis", axis, persistent=False)

    def forward(self, positions):
        angles = positions.float()[self.axis].permute(1, 2, 0) * self.frequencies
        angles = torch.cat((angles, angles), -1)[:, :, None]
        return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """The first channels of x [B, T, heads, d], as many as cos has, rotated in half pairs."""
    width = cos.shape[-1]
    turned, rest = x[..., :width], x[..., width:]
    first, second = turned.chunk(2, -1)
    return torch.cat((turned * cos + torch.cat((-second, first), -1) * sin, rest), -1)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        h, self.heads, self.kv_heads, self.dim = (config["hidden_size"], config["num_attention_heads"],
                                                  config["num_key_value_heads"], config["head_dim"])
        self.q_proj = nn.Linear(h, self.heads * self.dim * 2, bias=False)
        self.k_proj = nn.Linear(h, self.kv_heads * self.dim, bias=False)
        self.v_proj = nn.Linear(h, self.kv_heads * self.dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.dim, h, bias=False)
        self.q_norm = ZeroCentredNorm(self.dim, config["rms_norm_eps"])
        self.k_norm = ZeroCentredNorm(self.dim, config["rms_norm_eps"])

    def forward(self, y, segments, cos, sin):
        rows, length, _ = y.shape
        query, gate = self.q_proj(y).view(rows, length, self.heads, 2 * self.dim).chunk(2, -1)
        key = self.k_proj(y).view(rows, length, self.kv_heads, self.dim)
        value = self.v_proj(y).view(rows, length, self.kv_heads, self.dim)
        query = rotate(self.q_norm(query), cos, sin).to(value.dtype)
        key = rotate(self.k_norm(key), cos, sin).to(value.dtype)
        key, value = (x.repeat_interleave(self.heads // self.kv_heads, 2).transpose(1, 2) for x in (key, value))
        scores = (query.transpose(1, 2) @ key.transpose(2, 3)).float() * self.dim ** -0.5
        place = torch.arange(length, device=y.device)
        seen = (place[:, None] >= place) & (segments[:, :, None] == segments[:, None])
        weights = scores.masked_fill(~seen[:, None], -math.inf).softmax(-1).to(value.dtype)
        mixed = (weights @ value).transpose(1, 2) * torch.sigmoid(gate.float()).to(value.dtype)
        return self.o_proj(mixed.reshape(rows, length, -1))


class DeltaNet(nn.Module):
    def __init__(self, config):
        super().__init__()
        h, self.keys, self.values, self.dim = (config["hidden_size"], config["linear_num_key_heads"],
                                               config["linear_num_value_heads"], config["linear_key_head_dim"])
        key_width, value_width = self.keys * self.dim, self.values * self.dim
        self.in_proj_qkv = nn.Linear(h, 2 * key_width + value_width, bias=False)
        self.in_proj_z = nn.Linear(h, value_width, bias=False)
        self.in_proj_b = nn.Linear(h, self.values, bias=False)
        self.in_proj_a = nn.Linear(h, self.values, bias=False)
        self.conv1d = nn.Conv1d(2 * key_width + value_width, 2 * key_width + value_width, config["linear_conv_kernel_dim"],
                                groups=2 * key_width + value_width, bias=False)
        self.A_log = nn.Parameter(torch.zeros(self.values))
        self.dt_bias = nn.Parameter(torch.empty(self.values).uniform_(-8, -3))         # memories of 20 to 3,000 tokens
        self.norm = nn.Module()
        self.norm.weight = nn.Parameter(torch.ones(self.dim))
        self.out_proj = nn.Linear(value_width, h, bias=False)
        self.eps = config["rms_norm_eps"]

    def forward(self, y, segments):
        mixed = self.convolve(self.in_proj_qkv(y), segments)
        z = self.in_proj_z(y).unflatten(-1, (self.values, self.dim)).float()
        beta = torch.sigmoid(self.in_proj_b(y).float())
        decay = -self.A_log.exp() * F.softplus(self.in_proj_a(y).float() + self.dt_bias)
        query, key, value = mixed.split([self.keys * self.dim] * 2 + [self.values * self.dim], -1)
        query, key, value = (x.unflatten(-1, (-1, self.dim)) for x in (query, key, value))
        unit = lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)
        query, key = (unit(x).repeat_interleave(self.values // self.keys, 2) for x in (query, key))
        with torch.autocast(y.device.type, enabled=False):
            out = gated_delta_rule(query * self.dim ** -0.5, key, value, decay, beta, segments)
        out = out * torch.rsqrt(out.square().mean(-1, keepdim=True) + self.eps) * self.norm.weight * F.silu(z)
        return self.out_proj(out.flatten(2))

    def convolve(self, mixed, segments):
        """Causal depthwise convolution inside each segment, then SiLU; fp32."""
        mixed, width = mixed.float(), self.conv1d.weight.shape[-1]
        out = 0
        for back in range(width):
            moved = F.pad(mixed, (0, 0, back, 0))[:, :mixed.shape[1]]
            same = F.pad(segments, (back, 0), value=-2)[:, :segments.shape[1]] == segments
            out = out + moved * same[..., None] * self.conv1d.weight[:, 0, width - 1 - back]
        return F.silu(out)


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        h, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(h, inner, bias=False)
        self.up_proj = nn.Linear(h, inner, bias=False)
        self.down_proj = nn.Linear(inner, h, bias=False)

    def forward(self, y):
        return self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))


class Layer(nn.Module):
    def __init__(self, config, kind):
        super().__init__()
        self.input_layernorm = ZeroCentredNorm(config["hidden_size"], config["rms_norm_eps"])
        self.post_attention_layernorm = ZeroCentredNorm(config["hidden_size"], config["rms_norm_eps"])
        self.mlp = Mlp(config)
        self.full = kind == "full_attention"
        if self.full:
            self.self_attn = Attention(config)
        else:
            self.linear_attn = DeltaNet(config)

    def forward(self, x, segments, cos, sin):
        y = self.input_layernorm(x)
        x = x + (self.self_attn(y, segments, cos, sin) if self.full else self.linear_attn(y, segments)).float()
        return x + self.mlp(self.post_attention_layernorm(x)).float()


class LanguageModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config, kind) for kind in config["layer_types"])
        self.norm = ZeroCentredNorm(config["hidden_size"], config["rms_norm_eps"])
        self.rotary = Rotary(config)


# ---- vision ----------------------------------------------------------------------------------------------------------

class VisionBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner, self.heads = config["hidden_size"], config["intermediate_size"], config["num_heads"]
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn, self.mlp = nn.Module(), nn.Module()
        self.attn.qkv, self.attn.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp.linear_fc1, self.mlp.linear_fc2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x, seen, cos, sin):
        query, key, value = self.attn.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).unbind(2)
        query, key = (rotate(part.float(), cos, sin).to(value.dtype).transpose(1, 2) for part in (query, key))
        mixed = F.scaled_dot_product_attention(query, key, value.transpose(1, 2), attn_mask=seen)
        x = x + self.attn.proj(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp.linear_fc2(F.gelu(self.mlp.linear_fc1(self.norm2(x)), approximate="tanh"))


class VisionTower(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, merge, patch = config["hidden_size"], config["spatial_merge_size"], config["patch_size"]
        self.patch_embed, self.merger = nn.Module(), nn.Module()
        self.patch_embed.proj = nn.Conv3d(config["in_channels"], width, (config["temporal_patch_size"], patch, patch))
        self.pos_embed = nn.Embedding(config["num_position_embeddings"], width)
        self.blocks = nn.ModuleList(VisionBlock(config) for _ in range(config["depth"]))
        self.merger.norm = nn.LayerNorm(width, eps=1e-6)
        self.merger.linear_fc1 = nn.Linear(width * merge**2, width * merge**2)
        self.merger.linear_fc2 = nn.Linear(width * merge**2, config["out_hidden_size"])
        self.merge = merge
        quarter = width // config["num_heads"] // 4
        frequencies = 1 / config["rope_parameters"]["rope_theta"] ** (torch.arange(quarter, dtype=torch.float64) / quarter)
        self.register_buffer("frequencies", frequencies.float(), persistent=False)

    def forward(self, patches, segments, places, taps, weights):
        """-> [V * W / merge^2, out width]"""
        x = F.linear((patches.float() - 127.5) / 127.5, self.patch_embed.proj.weight.flatten(1), self.patch_embed.proj.bias)
        x = x + (self.pos_embed(taps) * weights[..., None]).sum(-2)
        angles = (places[..., None].float() * self.frequencies).flatten(2)
        angles = torch.cat((angles, angles), -1)[:, :, None]
        seen = (segments[:, :, None] == segments[:, None])[:, None]
        for block in self.blocks:
            x = block(x, seen, angles.cos(), angles.sin())
        x = self.merger.norm(x).reshape(-1, self.merger.linear_fc1.in_features)
        return self.merger.linear_fc2(F.gelu(self.merger.linear_fc1(x)))


class Backbone(nn.Module):
    """Qwen3_5ForConditionalGeneration: `model.language_model`, `model.visual`, `lm_head`."""

    def __init__(self, config):
        super().__init__()
        text = config["text_config"]
        self.model = nn.Module()
        self.model.language_model = LanguageModel(text)
        self.model.visual = VisionTower(config["vision_config"])
        self.lm_head = nn.Linear(text["hidden_size"], text["vocab_size"], bias=False)

    def forward(self, batch):
        """-> last hidden state [B, T, h], the final norm included"""
        text = self.model.language_model
        x = text.embed_tokens(batch.ids).float()
        if batch.patches.shape[0]:
            features = self.model.visual(batch.patches, batch.patch_segments, batch.patch_places, batch.patch_taps,
                                         batch.patch_weights)
            placed = F.embedding(batch.media_rows + 1, F.pad(features.float(), (0, 0, 1, 0)), padding_idx=0)
            x = torch.where(batch.media_rows[..., None] >= 0, placed, x)
        cos, sin = text.rotary(batch.positions)
        for layer in text.layers:
            x = layer(x, batch.segments, cos, sin)
        return text.norm(x)

    def language_losses(self, hidden, batch):
        """Mean cross-entropy of the next tokens of prompts and of those of compact answers. A helper in training: it teaches the layers
        words, looking back, and the questions themselves at many more a token."""
        rows = torch.arange(len(batch.ids), device=hidden.device)[:, None]
        logits = self.lm_head(hidden[rows, batch.learned - 1]).float()
        loss = F.cross_entropy(logits.flatten(0, 1), batch.ids[rows, batch.learned].flatten().long(), reduction="none")
        counted = torch.stack([batch.learned_kinds.flatten() == kind for kind in (encode.SAID, encode.ANSWER)]).float()
        return (counted @ loss) / counted.sum(-1).clamp(min=1)


# ---- head ------------------------------------------------------------------------------------------------------------

class Projections(nn.Module):
    """The four projections of torch.nn.MultiheadAttention, by its names."""

    def __init__(self, width, heads):
        super().__init__()
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        self.heads = heads

    def forward(self, query, memory, seen):
        """query [B, A, w] reads memory [B, M, w] where seen [B, A, M] -> [B, A, w]"""
        parts = zip((query, memory, memory), self.in_proj_weight.chunk(3), self.in_proj_bias.chunk(3))
        query, key, value = (F.linear(x, weight, bias).unflatten(-1, (self.heads, -1)).transpose(1, 2) for x, weight, bias in parts)
        scores = (query @ key.transpose(-1, -2)).float() * query.shape[-1] ** -0.5
        weights = scores.masked_fill(~seen[:, None], -1e30).softmax(-1).to(value.dtype)
        return self.out_proj((weights @ value).transpose(1, 2).flatten(2))


class EvidenceLayer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.query_norm, self.memory_norm, self.feedforward_norm = (nn.LayerNorm(width) for _ in range(3))
        self.attention = Projections(width, heads)
        self.feedforward = nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Identity(), nn.Linear(inner, width))

    def forward(self, options, memory, seen):
        options = options + self.attention(self.query_norm(options), self.memory_norm(memory), seen).float()
        return options + self.feedforward(self.feedforward_norm(options)).float()


class FieldLayer(nn.Module):
    """torch.nn.TransformerDecoderLayer with norm_first, by its names."""

    def __init__(self, width, heads, inner):
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.self_attn, self.multihead_attn = Projections(width, heads), Projections(width, heads)
        self.linear1, self.linear2 = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, fields, memory, fields_seen, memory_seen):
        y = self.norm1(fields)
        fields = fields + self.self_attn(y, y, fields_seen).float()
        fields = fields + self.multihead_attn(self.norm2(fields), memory, memory_seen).float()
        return fields + self.linear2(F.gelu(self.linear1(self.norm3(fields)))).float()


class JointHead(nn.Module):
    def __init__(self, config):
        super().__init__()
        h, w, heads, inner = config["hidden_size"], config["width"], config["heads"], config["feedforward"]
        self.hidden_norm = nn.LayerNorm(h)
        for name in ("memory", "question", "option_question", "global", "option_context", "option_lexical"):
            setattr(self, f"{name}_projection", nn.Linear(h, w, bias=False))
        self.type_embedding = nn.Embedding(3, w)
        self.evidence_layers = nn.ModuleList(EvidenceLayer(w, heads, inner) for _ in range(config["routing_layers"]))
        self.option_summary_norm, self.field_norm, self.option_norm = (nn.LayerNorm(w) for _ in range(3))
        self.layers = nn.ModuleList(FieldLayer(w, heads, inner) for _ in range(config["layers"]))
        self.residual_scorer = nn.Sequential(nn.Linear(4 * w, w), nn.GELU(), nn.Identity(), nn.Linear(w, 1))
        self.prior_logit_scale = nn.Parameter(torch.tensor(0.0))
        self.joint_logit_scale = nn.Parameter(torch.tensor(1.5))
        self.residual_gate = nn.Parameter(torch.tensor(2.0))

    def forward(self, hidden, batch, output_embedding):
        """hidden [B, T, h] -> logits [B, O]; unused places hold anything"""
        x = self.hidden_norm(hidden.float())
        memory = self.memory_projection(x)
        rows = torch.arange(x.shape[0], device=x.device)[:, None]
        last = x[rows, batch.question_last]                                            # [B, Q, h]
        asked = span_mean(x, batch.question_spans)
        context = span_mean(x, batch.option_spans)
        lexical = span_mean(F.embedding(batch.ids, output_embedding), batch.option_spans)
        owner = batch.option_owner.clamp(min=0)
        question_segments = batch.segments[rows, batch.question_last]                  # [B, Q]
        option_segments = question_segments[rows, owner]
        option_sees = option_segments[:, :, None] == batch.segments[:, None]
        question_sees = question_segments[:, :, None] == batch.segments[:, None]
        question_used = batch.question_spans[..., 1] > 0
        fields_see = (question_segments[:, :, None] == question_segments[:, None]) & question_used[:, None]
        owns = batch.option_owner[:, None] == torch.arange(asked.shape[1], device=x.device)[:, None]     # [B, Q, O]

        options = (self.option_context_projection(context) + self.option_lexical_projection(lexical)
                   + self.option_question_projection(asked)[rows, owner]).float()
        for layer in self.evidence_layers:
            options = layer(options, memory, option_sees)

        base = self.question_projection(asked).float()
        scores = (base @ options.transpose(1, 2)).float() * base.shape[-1] ** -0.5
        summary = scores.masked_fill(~owns, -1e30).softmax(-1) @ options
        fields = (base + self.option_summary_norm(summary) + self.global_projection(last).float()
                  + self.type_embedding(batch.question_types))
        for layer in self.layers:
            fields = layer(fields, memory, fields_see, question_sees)

        prior = F.cosine_similarity(lexical, (asked + last)[rows, owner], -1, 1e-12)
        field, option = self.field_norm(fields)[rows, owner], self.option_norm(options)
        features = torch.cat((field, option, field * option, (field - option).abs()), -1)
        joint = (self.joint_logit_scale.clamp(max=math.log(100)).exp() * F.cosine_similarity(field, option, -1, 1e-8)
                 + self.residual_scorer(features)[..., 0].float())
        return self.prior_logit_scale.clamp(max=math.log(100)).exp() * prior + torch.sigmoid(self.residual_gate) * joint


def span_mean(x, spans):
    """Mean of x [B, T, h] over half-open spans [B, S, 2] -> [B, S, h]; zero for empty spans."""
    place = torch.arange(x.shape[1], device=x.device)
    inside = (place >= spans[..., :1]) & (place < spans[..., 1:])
    count = (spans[..., 1:] - spans[..., :1]).clamp(min=1)
    return (inside.to(x.dtype) @ x) / count


# ---- both ------------------------------------------------------------------------------------------------------------

class TrebleTiny(nn.Module):
    def __init__(self, config, head_config):
        super().__init__()
        self.backbone, self.head = Backbone(config), JointHead(head_config)
        self.reset()

    @torch.no_grad()
    def reset(self):
        """Random weights: matrices scaled by their fan-in, outputs of residual branches smaller."""
        for name, weight in self.named_parameters():
            if weight.ndim < 2:
                continue
            if "embed" in name or "lm_head" in name:
                weight.normal_(0, 0.02 if "type" in name else 0.1)
            elif "conv1d" in name:
                weight.normal_(0, 0.05)[:, 0, -1] += 1
            else:
                branch = any(part in name for part in ("o_proj", "out_proj", "down_proj", "linear2", "feedforward.3", "linear_fc2"))
                weight.normal_(0, (0.3 if branch else 1.0) * weight[0].numel() ** -0.5)

    def forward(self, batch, with_language_losses=False):
        """-> logits [B, Q, O]: of each question its own options', -inf elsewhere; and, when asked, the next-token losses"""
        hidden = self.backbone(batch)
        logits = self.head(hidden, batch, self.backbone.lm_head.weight)
        places = torch.arange(batch.question_types.shape[1], device=logits.device)
        owns = batch.option_owner[:, None] == places[:, None]
        logits = logits[:, None].float().masked_fill(~owns, -math.inf)
        return (logits, self.backbone.language_losses(hidden, batch)) if with_language_losses else logits


def decision_loss(logits, answers, smoothing, brier):
    """Mean over questions of label-smoothed cross-entropy plus `brier` times the Brier score; also the number right.

    logits [B, Q, O], -inf where an option is not the question's; answers [B, Q], -1 unused.
    """
    used = answers >= 0
    owned = logits > -math.inf
    logits = torch.where(owned, logits, -1e30)
    log_p = logits.log_softmax(-1)
    target = (answers[..., None] == torch.arange(logits.shape[-1], device=logits.device)).float()
    count = owned.sum(-1, keepdim=True).clamp(min=1)
    smooth = (1 - smoothing) * target + smoothing * owned / count
    entropy = -(smooth * torch.where(owned, log_p, 0.0)).sum(-1)
    score = ((log_p.exp() - target) * owned).square().sum(-1)
    right = (logits.argmax(-1) == answers) & used
    total = used.sum().clamp(min=1)
    return ((entropy + brier * score) * used).sum() / total, right
