"""What the released folder of treble-tiny holds besides weights: sizes and configuration files.

The layout is that of the published Clef releases (transformers 5.17, class Qwen3_5ForConditionalGeneration), only narrower.
"""

import media

VOCABULARY = 2079                          # byte-level BPE entries; the added tokens follow
ADDED_TOKENS = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
    "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
    "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>",
    "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>", "<|audio_start|>", "<|audio_end|>", "<tts_pad>",
    "<tts_text_bos>", "<tts_text_eod>", "<tts_text_bos_single>", "<|audio_pad|>"]
NOT_SPECIAL = {token for token in ADDED_TOKENS if not token.startswith("<|") and not token.startswith("<tts")} | {
    "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}
ROWS = VOCABULARY + len(ADDED_TOKENS)      # of the embedding tables: 2112


def token_id(token):
    return VOCABULARY + ADDED_TOKENS.index(token)


TEXT = {
    "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": None, "eos_token_id": None, "head_dim": 256,
    "hidden_act": "silu", "hidden_size": 256, "initializer_range": 0.02, "intermediate_size": 512,
    "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"] * 2,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 2, "linear_num_value_heads": 2,
    "linear_value_head_dim": 128, "max_position_embeddings": 262144, "model_type": "qwen3_5_text", "num_attention_heads": 2,
    "num_hidden_layers": 8, "num_key_value_heads": 1, "pad_token_id": None, "partial_rotary_factor": 0.25,
    "rms_norm_eps": 1e-06,
    "rope_parameters": {"mrope_interleaved": True, "mrope_section": [11, 11, 10], "partial_rotary_factor": 0.25,
                        "rope_theta": 10000000.0, "rope_type": "default"},
    "tie_word_embeddings": False, "use_cache": True, "vocab_size": ROWS}

VISION = {
    "deepstack_visual_indexes": [], "depth": 2, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 96, "in_channels": 3,
    "initializer_range": 0.02, "intermediate_size": 192, "model_type": "qwen3_5_vision", "num_heads": 2,
    "num_position_embeddings": 256, "out_hidden_size": 256, "patch_size": 16,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "axial"}, "spatial_merge_size": 2, "temporal_patch_size": 2}

CONFIG = {
    "architectures": ["Qwen3_5ForConditionalGeneration"], "dtype": "bfloat16", "image_token_id": token_id("<|image_pad|>"),
    "model_type": "qwen3_5", "text_config": TEXT, "tie_word_embeddings": False, "transformers_version": "5.17.0",
    "video_token_id": token_id("<|video_pad|>"), "vision_config": VISION, "vision_end_token_id": token_id("<|vision_end|>"),
    "vision_start_token_id": token_id("<|vision_start|>")}

HEAD = {"hidden_size": 256, "width": 128, "routing_layers": 2, "layers": 2, "heads": 4, "feedforward": 256}

GENERATION = {"_from_model_config": True, "output_attentions": False, "output_hidden_states": False,
              "transformers_version": "5.17.0", "use_cache": True}

PROCESSOR = media.processor_config()       # its defaults are this release's limits on pixels

TOKENIZER = {"backend": "tokenizers", "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>",
             "model_max_length": 262144, "pad_token": "<|endoftext|>", "processor_class": "Qwen3VLProcessor",
             "tokenizer_class": "TokenizersBackend"}
