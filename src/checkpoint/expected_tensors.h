#pragma once

#include <treble/json.h>

#include <cstdint>
#include <string>
#include <vector>

namespace treble {

/// A tensor that a release must hold, under its canonical name (Checkpoint) and in its unquantised shape.
struct ExpectedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// What config.json implies: text model, vision tower if there is a vision_config, and lm_head unless tied.
/// @throws Error kCheckpoint if a size is missing, no whole number or out of any sensible range
std::vector<ExpectedTensor> expected_backbone_tensors(const Json& config);

/// What joint_head_config.json implies, names beginning with "head.". @throws Error kCheckpoint as above
std::vector<ExpectedTensor> expected_head_tensors(const Json& head_config);

/// True if the output embedding is the input embedding. The top level decides, then text_config.
bool has_tied_embeddings(const Json& config);

/// For each layer, whether it is full attention (else the gated delta net): layer_types, or the interval that
/// stands for it. @throws Error kCheckpoint
std::vector<bool> full_attention_layers(const Json& config);

/// A whole number of a configuration: its value, or the default if the key is missing (0: it must be there).
/// @throws Error kCheckpoint unless it is from 1 to 2^20
std::int64_t config_size(const Json& object, const char* key, std::int64_t default_size = 0);

}  // namespace treble
