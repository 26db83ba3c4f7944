#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace treble {

enum class LayerKind { kDeltaNet, kAttention };  // "linear_attention", "full_attention" in config.json

/// text_config of config.json; fields keep the file's names.
struct TextConfig {
  std::int64_t vocab_size = 248320;
  std::int64_t hidden_size = 4096;
  std::int64_t intermediate_size = 12288;
  std::int64_t num_hidden_layers = 32;
  std::int64_t num_attention_heads = 16;
  std::int64_t num_key_value_heads = 4;
  std::int64_t head_dim = 256;
  std::int64_t linear_conv_kernel_dim = 4;
  std::int64_t linear_key_head_dim = 128;
  std::int64_t linear_value_head_dim = 128;
  std::int64_t linear_num_key_heads = 16;
  std::int64_t linear_num_value_heads = 32;
  std::int64_t max_position_embeddings = 32768;
  float rms_norm_eps = 1e-6f;
  float rope_theta = 1e7f;
  double partial_rotary_factor = 0.25;
  std::array<std::int32_t, 3> mrope_section = {11, 11, 10};
  std::vector<LayerKind> layer_types;  ///< [num_hidden_layers]

  std::int64_t rotary_dim() const {
    return static_cast<std::int64_t>(static_cast<double>(head_dim) * partial_rotary_factor);
  }
  std::int64_t key_dim() const { return linear_num_key_heads * linear_key_head_dim; }
  std::int64_t value_dim() const { return linear_num_value_heads * linear_value_head_dim; }
  std::int64_t conv_dim() const { return 2 * key_dim() + value_dim(); }
};

/// vision_config of config.json; fields keep the file's names.
struct VisionConfig {
  // Items are made of patches of this form (src/media); other forms are refused.
  static constexpr std::int64_t kInChannels = 3, kTemporalPatchSize = 2, kPatchSize = 16, kSpatialMergeSize = 2;
  static constexpr std::int64_t kPatchFeatures = kInChannels * kTemporalPatchSize * kPatchSize * kPatchSize;
  static constexpr std::int64_t kMergedPatches = kSpatialMergeSize * kSpatialMergeSize;

  std::int64_t depth = 27;
  std::int64_t hidden_size = 1152;
  std::int64_t intermediate_size = 4304;
  std::int64_t num_heads = 16;
  std::int64_t out_hidden_size = 3584;
  std::int64_t num_position_embeddings = 2304;  ///< a square number
  float rope_theta = 1e4f;
  float layer_norm_eps = 1e-6f;  ///< not in the file

  std::int64_t head_dim() const { return hidden_size / num_heads; }
};

/// joint_head_config.json; fields keep the file's names.
struct HeadConfig {
  std::int64_t hidden_size = 4096;
  std::int64_t width = 1024;
  std::int64_t routing_layers = 2;
  std::int64_t layers = 4;
  std::int64_t heads = 16;
  std::int64_t feedforward = 4096;
};

struct ModelConfig {
  TextConfig text;
  std::optional<VisionConfig> vision;  ///< nullopt: text only
  HeadConfig head;
  bool tie_word_embeddings = false;
};

/// Layers of the regular stack: every `full_attention_interval`-th is full attention.
std::vector<LayerKind> regular_layer_types(std::int64_t num_layers, std::int64_t full_attention_interval = 4);

/// Reads config.json and joint_head_config.json of a release folder.
/// @throws Error kCheckpoint naming the file and the key: missing, of a wrong type, or a value this engine does not
///         implement (another model_type, attn_output_gate false, a rope_type other than "default", ...)
ModelConfig read_config(const std::filesystem::path& folder);

/// The longest record the release allows: max_position_embeddings of config.json. Reads that file alone.
std::int64_t read_max_positions(const std::filesystem::path& folder);

}  // namespace treble
