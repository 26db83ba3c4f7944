"""The gated delta rule over packed rows, chunk by chunk, with its gradient.

Inside a chunk everything is matrix products that all chunks do at once. Only the state's way from chunk to chunk is sequential:

    u_n = U_n - W_n S_n,   S_{n+1} = k_n S_n + K_n^T u_n             forwards
    v_n = X_n + K_n D_n,   D_{n-1} = k_n D_n + Y_n - W_n^T v_n        backwards, D the gradient of the state behind chunk n

Columns of S and D never mix, so on a GPU one Triton program takes a block of them and keeps it in registers.
"""

import math
from typing import Optional

import torch
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl
except ImportError:                        # CPUs take the PyTorch loop
    triton = None

CHUNK = 64
COLUMNS = 32                               # of the state, per program


# ---- (I + L)^-1 ------------------------------------------------------------------------------------------------------

class UnitLowerInverse(torch.autograd.Function):
    """(I + L)^-1 for strictly lower triangular L [..., 64, 64]: blocks of 8 by their finite series, then pairs of blocks."""

    @staticmethod
    def forward(ctx, lower):
        size, block = lower.shape[-1], 8
        blocks = lower.unflatten(-1, (-1, block)).unflatten(-3, (-1, block))           # [..., row block, row, column block, column]
        diagonal = -blocks.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)                  # [..., block, row, column]
        eye = torch.eye(block, device=lower.device, dtype=lower.dtype)
        square = diagonal @ diagonal
        inverse = (eye + diagonal) @ (eye + square) @ (eye + square @ square)
        while block < size:
            pairs = lower.unflatten(-1, (-1, 2 * block)).unflatten(-3, (-1, 2 * block)).diagonal(dim1=-4, dim2=-2).movedim(-1, -3)
            first, second = inverse[..., 0::2, :, :], inverse[..., 1::2, :, :]
            corner = -second @ pairs[..., block:, :block] @ first
            inverse = torch.cat((torch.cat((first, torch.zeros_like(first)), -1), torch.cat((corner, second), -1)), -2)
            block *= 2
        inverse = inverse.squeeze(-3)
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx, gradient):
        (inverse,) = ctx.saved_tensors
        transposed = inverse.transpose(-1, -2)
        return -(transposed @ gradient @ transposed).tril(-1)


# ---- the sequential part ---------------------------------------------------------------------------------------------

if triton:
    @triton.jit
    def scan_kernel(first, second, added, kept, start, values, states, COUNT: tl.constexpr, REVERSE: tl.constexpr, ADD: tl.constexpr,
                    CHUNK: tl.constexpr, KEYS: tl.constexpr, VALUES: tl.constexpr, COLUMNS: tl.constexpr):
        """For n in order: values_n = start_n + sign first_n state; states_n = state (before the step);
        state = kept_n state + added_n + second_n^T values_n. first, second [*, N, CHUNK, KEYS]; added [*, N, KEYS, VALUES].
        sign is -1 forwards; backwards it is second that counts negatively."""
        row, column = tl.program_id(0), tl.program_id(1)
        token, key = tl.arange(0, CHUNK), tl.arange(0, KEYS)
        value = column * COLUMNS + tl.arange(0, COLUMNS)
        state = tl.zeros((KEYS, COLUMNS), tl.float32)
        for i in range(COUNT):
            n = row.to(tl.int64) * COUNT + (COUNT - 1 - i if REVERSE else i)
            in_keys = n * CHUNK * KEYS + token[:, None] * KEYS + key
            in_values = n * CHUNK * VALUES + token[:, None] * VALUES + value
            in_state = n * KEYS * VALUES + key[:, None] * VALUES + value
            tl.store(states + in_state, state)
            product = tl.dot(tl.load(first + in_keys), state)
            result = tl.load(start + in_values) + (product if REVERSE else -product)
            tl.store(values + in_values, result)
            moved = tl.dot(tl.trans(tl.load(second + in_keys)), result)
            state = tl.load(kept + n) * state + (-moved if REVERSE else moved)
            if ADD:
                state += tl.load(added + in_state)


@torch.library.custom_op("treble::scan", mutates_args=())
def scan(first: torch.Tensor, second: torch.Tensor, start: torch.Tensor, kept: torch.Tensor, added: Optional[torch.Tensor] = None,
         reverse: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """The recurrence of scan_kernel. first, second [B, N, C, k]; start [B, N, C, v]; kept [B, N]; added [B, N, k, v] or None
    -> values [B, N, C, v], states [B, N, k, v]"""
    rows, count, chunk, keys = first.shape
    width = start.shape[-1]
    first, second, start, kept = (x.contiguous() for x in (first, second, start, kept))
    values = start.new_empty(start.shape)
    states = start.new_empty(rows, count, keys, width)
    if first.is_cuda:
        scan_kernel[(rows, width // COLUMNS)](first, second, None if added is None else added.contiguous(), kept, start, values, states,
                                              COUNT=count, REVERSE=reverse, ADD=added is not None, CHUNK=chunk, KEYS=keys, VALUES=width,
                                              COLUMNS=COLUMNS, num_warps=4, num_stages=2)
        return values, states
    state = start.new_zeros(rows, keys, width)
    sign = 1 if reverse else -1
    for n in reversed(range(count)) if reverse else range(count):
        states[:, n] = state
        values[:, n] = start[:, n] + sign * first[:, n] @ state
        state = kept[:, n, None, None] * state - sign * second[:, n].transpose(-1, -2) @ values[:, n]
        if added is not None:
            state = state + added[:, n]
    return values, states


@scan.register_fake
def _(first, second, start, kept, added=None, reverse=False):
    return start.new_empty(start.shape), start.new_empty(*first.shape[:2], first.shape[-1], start.shape[-1])


class ChunkScan(torch.autograd.Function):
    """U, W, K, Q, A, k -> outputs A_n u_n + Q_n S_n. U [B, N, C, v]; W, K, Q [B, N, C, d]; A [B, N, C, C]; k [B, N]."""

    @staticmethod
    def forward(ctx, new_value, old_key, key, query, within, kept):
        update, states = scan(old_key, key, new_value, kept)
        ctx.save_for_backward(old_key, key, query, within, kept, update, states)
        return within @ update + query @ states

    @staticmethod
    def backward(ctx, gradient):
        old_key, key, query, within, kept, update, states = ctx.saved_tensors
        turned = lambda x: x.transpose(-1, -2)
        to_update, to_state = scan(key, old_key, turned(within) @ gradient, kept, turned(query) @ gradient, True)
        return (to_update, -to_update @ turned(states), update @ turned(to_state), gradient @ turned(states),
                gradient @ turned(update), (states * to_state).sum((-1, -2)))


# ---- all of it -------------------------------------------------------------------------------------------------------

def gated_delta_rule(query, key, value, decay, beta, segments):
    """query, key, value [B, T, H, d] fp32 (query and key normed, query scaled); decay (log) and beta [B, T, H]; segments [B, T]; T a
    multiple of CHUNK -> [B, T, H, d]. The state starts from zero in every segment."""
    query, key, value, decay, beta, weight, carried, last = prepare(query, key, value, decay, beta, segments)
    inverse = UnitLowerInverse.apply((beta[..., None] * (key @ key.transpose(-1, -2)) * weight).tril(-1))
    tensors = (inverse @ (value * beta[..., None]), inverse @ (key * (beta * carried)[..., None]), key * last[..., None],
               query * carried[..., None], query @ key.transpose(-1, -2) * weight, carried[..., -1])
    out = ChunkScan.apply(*[x.flatten(0, 1) for x in tensors])
    return out.unflatten(0, (value.shape[0], -1)).movedim(1, 3).flatten(1, 2)


def prepare(query, key, value, decay, beta, segments):
    """Chunks [B, H, N, C, ...] of the inputs, and from decay and segments: weight [.., C, C] of token j in token i; carried [.., C], what
    token i keeps of the incoming state; last [.., C], what the outgoing state keeps of token i."""
    chunks = lambda x: x.unflatten(1, (-1, CHUNK)).movedim(3, 1).contiguous()
    query, key, value, decay, beta = map(chunks, (query, key, value, decay, beta))
    segments = segments.unflatten(1, (-1, CHUNK))[:, None]                             # [B, 1, N, C]
    before = F.pad(segments[:, :, :-1, -1], (1, 0), value=-2)                          # the last segment of the chunk before
    same = segments[..., :, None] == segments[..., None, :]
    total = decay.cumsum(-1)
    lower = same & torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=key.device).tril()
    weight = (total[..., :, None] - total[..., None, :]).masked_fill(~lower, -math.inf).exp()
    carried = total.exp() * (segments == before[..., None])
    last = (total[..., -1:] - total).exp() * (segments == segments[..., -1:])
    return query, key, value, decay, beta, weight, carried, last
