#pragma once

#include <treble/engine.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "ops/ops.h"
#include "quant/linear_weight.h"
#include "tensor/tensor_view.h"

namespace treble {

struct MlpWeights {
  LinearWeight gate_proj, up_proj;  // [intermediate_size, h]
  LinearWeight down_proj;           // [h, intermediate_size]
};

struct AttentionWeights {
  LinearWeight q_proj;          // [num_attention_heads * 2 * head_dim, h]: per head its query rows, then its gate rows
  LinearWeight k_proj, v_proj;  // [num_key_value_heads * head_dim, h]
  LinearWeight o_proj;          // [h, num_attention_heads * head_dim]
  TensorView q_norm, k_norm;    // [head_dim], gains minus one
};

struct DeltaNetWeights {
  LinearWeight in_proj_qkv;           // [conv_dim, h]
  LinearWeight in_proj_z;             // [value_dim, h]
  LinearWeight in_proj_b, in_proj_a;  // [linear_num_value_heads, h]
  LinearWeight out_proj;              // [h, value_dim]
  TensorView conv1d;                  // [conv_dim, linear_conv_kernel_dim]
  TensorView A_log, dt_bias;          // [linear_num_value_heads]
  TensorView norm;                    // [linear_value_head_dim], the gain itself
};

struct LayerWeights {
  TensorView input_layernorm, post_attention_layernorm;  // [h], gains minus one
  std::variant<DeltaNetWeights, AttentionWeights> mixer;
  MlpWeights mlp;
};

struct BackboneWeights {
  TensorView embed_tokens;  // [vocab_size, h]
  std::vector<LayerWeights> layers;
  TensorView norm;  // [h], gain minus one
};

struct LayerNormWeights {
  TensorView weight, bias;
};

/// One block of the vision tower; D = its hidden_size.
struct VisionBlockWeights {
  LayerNormWeights norm1, norm2;  // [D]
  LinearWeight qkv;               // [3 D, D]: query, key, value rows, each head-major
  LinearWeight proj;              // [D, D]
  LinearWeight fc1, fc2;          // mlp.linear_fc1, .linear_fc2: [intermediate_size, D], [D, intermediate_size]
};

/// docs/model.md, "Vision tower".
struct VisionWeights {
  LinearWeight patch_embed;  // [D, kPatchFeatures]
  TensorView pos_embed;      // [num_position_embeddings, D]
  std::vector<VisionBlockWeights> blocks;
  LayerNormWeights merger_norm;         // [D]
  LinearWeight merger_fc1, merger_fc2;  // [4 D, 4 D], [h, 4 D]
};

/// Multi-head attention as torch stores it, its input projection cut into the query's and the memory's rows.
struct HeadAttentionWeights {
  LinearWeight query;      // [w, w]
  LinearWeight key_value;  // [2 w, w]
  LinearWeight out_proj;   // [w, w]
};

struct EvidenceLayerWeights {
  LayerNormWeights query_norm, memory_norm, feedforward_norm;
  HeadAttentionWeights attention;
  LinearWeight feedforward_in, feedforward_out;  // feedforward.0, feedforward.3
};

struct DecoderLayerWeights {
  LayerNormWeights norm1, norm2, norm3;
  HeadAttentionWeights self_attn, multihead_attn;
  LinearWeight linear1, linear2;
};

/// docs/model.md, "Joint schema head"; w = width.
struct HeadWeights {
  LayerNormWeights hidden_norm;  // [h]
  LinearWeight memory_projection, question_projection, option_question_projection, global_projection,
      option_context_projection, option_lexical_projection;  // [w, h]
  TensorView type_embedding;                                 // [3, w]
  std::vector<EvidenceLayerWeights> evidence_layers;
  LayerNormWeights option_summary_norm, field_norm, option_norm;  // [w]
  std::vector<DecoderLayerWeights> layers;
  LinearWeight residual_scorer_in, residual_scorer_out;  // residual_scorer.0, .3: [w, 4 w], [1, w]
  float prior_scale = 1;                                 // exp(min(prior_logit_scale, ln 100))
  float joint_scale = 1;                                 // exp(min(joint_logit_scale, ln 100))
  float residual_gate = 1;                               // after sigmoid
};

/// Everything a forward pass reads. Views point into memory that `storage` keeps alive, or to the backend's copies.
struct Model {
  ModelConfig config;
  BackboneWeights backbone;
  std::optional<VisionWeights> vision;  // nullopt: the release has none, and reads text only
  HeadWeights head;
  TensorView output_embedding;  // [vocab_size, h]: lm_head.weight, or embed_tokens when tied
  std::vector<std::shared_ptr<const void>> storage;
  std::size_t weight_bytes = 0;  // of all tensors above, each counted once
};

/// Gives the model's tensors by canonical name (checkpoint.h). The loader below asks for each exactly once.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// A bf16 tensor of that shape. @throws Error kCheckpoint naming tensor, file and both shapes
  virtual TensorView tensor(const std::string& name, std::initializer_list<std::int64_t> shape) = 0;
  /// The Linear of that name in the format that it is stored in; a plain one where the source knows no other. A
  /// quantised one may have a bias that the model's definition does not.
  /// @throws Error kCheckpoint naming module and file
  virtual LinearWeight linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                              bool has_bias);
  /// A finite number of shape []. @throws Error kCheckpoint
  virtual float scalar(const std::string& name) = 0;
  /// Where the bytes of a tensor that this gave are in a file; nullopt where they are in memory alone.
  virtual std::optional<FileRange> file_range(const TensorView& tensor) const;
  /// A tensor that this gave is read no more: its memory may go.
  virtual void release(const TensorView& tensor);
  /// A quantised Linear that this gave is read no more. Nothing to do where others may be rows of the same tensors.
  virtual void release(const LinearWeight& linear);
  /// Whether there is any tensor below that name.
  virtual bool has(const std::string& name) const = 0;
};

/// Collects a whole model from a source and lets the backend place it.
Model build_model(const ModelConfig& config, WeightSource& source, Ops& ops);

/// Collects the vision tower from a source, for a model that has none yet.
void add_tower(const VisionConfig& config, WeightSource& source, Ops& ops, Model& model);

/// Whether a release reads images and videos: it has a vision_config and the tensors of the tower.
/// @throws Error kCheckpoint
bool has_vision_tower(const std::filesystem::path& folder);

/// What becomes of a release's vision tower while a model is loaded.
enum class TowerLoading {
  kNow,
  kLater,  ///< its tensors are looked at, so that a damaged one is refused, and left where they are
};

/// The weights of a release folder, used where the files are mapped. How a Linear is stored is decided for each by its
/// tensors alone (storage_format.h). Other tensors stored in another floating type than bf16
/// (A_log and the gated norm of some releases) are rounded to bf16, nearest even, as the reference does at load.
/// @param conversion  quantises the plain Linears on the way, one at a time
/// @param progress  called on the calling thread, with bytes of files: done, and in all
/// @throws Error kCheckpoint: a tensor is missing, misshapen, of a type that is not implemented, or one that nothing
/// reads; kArgument: a conversion, and the release is quantised already
Model load_model(const std::filesystem::path& folder, Ops& ops, WeightConversion conversion = WeightConversion::kNone,
                 const LoadProgress& progress = {}, TowerLoading tower = TowerLoading::kNow);

/// Adds the vision tower of the release folder that a model was loaded from. @throws as load_model
void load_tower(const std::filesystem::path& folder, Ops& ops, WeightConversion conversion, Model& model);

}  // namespace treble
