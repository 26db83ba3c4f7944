"""Shapes of the published sizes, for the scripts beside this file."""

# As published in the config.json of each size.
SIZES = {
    "27b": dict(hidden_size=5120, intermediate_size=17408, num_hidden_layers=64, num_attention_heads=24,
                num_key_value_heads=4, linear_num_value_heads=48),
    "9b": dict(hidden_size=4096, intermediate_size=12288, num_hidden_layers=32, num_attention_heads=16,
               num_key_value_heads=4, linear_num_value_heads=32),
    "0.8b": dict(hidden_size=1024, intermediate_size=3584, num_hidden_layers=24, num_attention_heads=8,
                 num_key_value_heads=2, linear_num_value_heads=16),
}
COMMON = dict(vocab_size=248320, head_dim=256, linear_num_key_heads=16, linear_key_head_dim=128,
              linear_value_head_dim=128, linear_conv_kernel_dim=4, max_position_embeddings=262144)
TOWERS = {
    "27b": dict(depth=27, hidden_size=1152, intermediate_size=4304, num_heads=16, num_position_embeddings=2304),
    "9b": dict(depth=27, hidden_size=1152, intermediate_size=4304, num_heads=16, num_position_embeddings=2304),
    "0.8b": dict(depth=12, hidden_size=768, intermediate_size=3072, num_heads=12, num_position_embeddings=2304),
}
HEAD = dict(width=1024, routing_layers=2, layers=4, heads=16, feedforward=4096)


def text_shape(size):
    """Fields of text_config. `size` is a key of SIZES; one with fewer layers, e.g. "27b:16"; or LAYERSxHIDDEN with
    HIDDEN a multiple of 256, e.g. "8x512": a small model of the same proportions. Raises ValueError for others."""
    published, _, first_layers = size.partition(":")
    if published in SIZES and (not first_layers or first_layers.isdigit()):
        shape = COMMON | SIZES[published]
        if first_layers:
            shape["num_hidden_layers"] = max(1, min(int(first_layers), shape["num_hidden_layers"]))
        return shape
    try:
        layers, hidden = (int(part) for part in size.split("x"))
    except ValueError:
        layers = hidden = 0
    if layers < 1 or hidden < 256 or hidden % 256:
        raise ValueError(f"size {size!r}: use {', '.join(SIZES)}, one of these with fewer layers like 27b:16, or "
                         "LAYERSxHIDDEN with HIDDEN a multiple of 256")
    kv_heads = max(1, hidden // 1024)
    return COMMON | dict(hidden_size=hidden, intermediate_size=hidden // 2 * 7, num_hidden_layers=layers,
                         num_attention_heads=4 * kv_heads, num_key_value_heads=kv_heads,
                         linear_num_value_heads=16 * max(1, hidden // 2048))


def products(shape):
    """The matrix products of one pass, those that share an input as one: (name, in_features, out_features, layers)."""
    hidden, inner, head_dim = shape["hidden_size"], shape["intermediate_size"], shape["head_dim"]
    layers = shape["num_hidden_layers"]
    full = layers // 4
    keys = shape["linear_num_key_heads"] * shape["linear_key_head_dim"]
    values = shape["linear_num_value_heads"] * shape["linear_value_head_dim"]
    queries, kv = shape["num_attention_heads"] * head_dim, shape["num_key_value_heads"] * head_dim
    return [("mlp gate, up", hidden, 2 * inner, layers), ("mlp down", inner, hidden, layers),
            ("delta net in", hidden, 2 * keys + 2 * values + 2 * shape["linear_num_value_heads"], layers - full),
            ("delta net out", values, hidden, layers - full),
            ("attention in", hidden, 2 * queries + 2 * kv, full), ("attention out", queries, hidden, full)]
