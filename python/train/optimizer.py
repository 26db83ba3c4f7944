"""Muon for the matrices, AdamW for everything else. Rates are tensors, so that a step can be recorded in a CUDA graph."""

import torch

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)  # quintic whose iteration drives singular values towards 1 (K. Jordan's Muon)


def orthogonalised(gradients):
    """[N, r, c] -> about U V^T of each, by five Newton-Schulz steps in bf16."""
    a, b, c = NEWTON_SCHULZ
    x = gradients.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.transpose(-1, -2) if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.transpose(-1, -2)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.transpose(-1, -2) if tall else x).float()


class Muon:
    """Momentum, then orthogonalised updates scaled to a root mean square of 0.2, so that AdamW's learning rates fit."""

    def __init__(self, weights, momentum=0.95, weight_decay=0.0):
        self.groups, self.momentum, self.weight_decay = {}, momentum, weight_decay
        for weight in weights:
            self.groups.setdefault(tuple(weight.shape), []).append(weight)
        self.state = [torch.zeros(len(group), *shape, device=group[0].device) for shape, group in self.groups.items()]

    def step(self, rate):
        for (shape, group), momenta in zip(self.groups.items(), self.state):
            gradients = torch.stack([weight.grad for weight in group])
            momenta.lerp_(gradients, 1 - self.momentum)
            update = torch.lerp(gradients, momenta, self.momentum)                    # Nesterov
            parts = 3 if shape[0] == 3 * shape[1] else 1                              # query, key and value stand stacked
            update = orthogonalised(update.unflatten(1, (parts, -1)).flatten(0, 1))
            update = update * (0.2 * max(update.shape[-2:]) ** 0.5 * rate)
            torch._foreach_mul_(group, 1 - rate * self.weight_decay)
            torch._foreach_sub_(group, list(update.unflatten(0, (-1, parts)).flatten(1, 2)))


class AdamW:
    def __init__(self, weights, betas=(0.9, 0.98), eps=1e-8):
        self.weights, self.betas, self.eps = list(weights), betas, eps
        self.count = torch.zeros((), device=self.weights[0].device)
        self.first, self.second = ([torch.zeros_like(weight) for weight in self.weights] for _ in range(2))
        self.state = [self.count, *self.first, *self.second]

    def step(self, rate):
        gradients = [weight.grad for weight in self.weights]
        self.count += 1
        torch._foreach_lerp_(self.first, gradients, 1 - self.betas[0])
        torch._foreach_mul_(self.second, self.betas[1])
        torch._foreach_addcmul_(self.second, gradients, gradients, 1 - self.betas[1])
        scale = torch._foreach_sqrt(self.second)
        torch._foreach_div_(scale, (1 - self.betas[1] ** self.count).sqrt())
        torch._foreach_add_(scale, self.eps)
        update = torch._foreach_div(self.first, scale)
        torch._foreach_mul_(update, rate / (1 - self.betas[0] ** self.count))
        torch._foreach_sub_(self.weights, update)


class Optimizers:
    """Both optimizers of a model. `factor`, a tensor, scales both rates."""

    def __init__(self, model, matrix_rate, other_rate, weight_decay):
        matrices, others = [], []
        for name, weight in model.named_parameters():
            is_matrix = weight.ndim == 2 and min(weight.shape) > 3 and not any(part in name for part in ("embed", "lm_head"))
            (matrices if is_matrix else others).append(weight)
        self.all = [Muon(matrices, weight_decay=weight_decay), AdamW(others)]
        self.rates = [matrix_rate, other_rate]
        self.factor = torch.zeros((), device=others[0].device)

    @torch.no_grad()
    def step(self):
        for optimizer, rate in zip(self.all, self.rates):
            optimizer.step(rate * self.factor)

    def state(self):
        return [tensor for optimizer in self.all for tensor in optimizer.state]

    @torch.no_grad()
    def restore(self, saved):
        """In place: a recorded step goes on using the same tensors."""
        for tensor, value in zip(self.state(), saved, strict=True):
            tensor.copy_(value)
