#include "quantize/conversion.h"

#include <doctest/doctest.h>

namespace treble {
namespace {

TEST_CASE("conversion: INT8 converts the large projections of the text model alone") {
  for (const QuantizeFormat format : {QuantizeFormat::kInt8Convrot, QuantizeFormat::kInt8}) {
    for (const char* part :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "linear_attn.in_proj_qkv",
          "linear_attn.in_proj_z", "linear_attn.out_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
      CHECK(is_converted(format, std::string("text.layers.12.") + part));
    for (const char* module :
         {"text.layers.0.linear_attn.in_proj_a", "text.layers.0.linear_attn.in_proj_b",
          "text.layers.0.linear_attn.conv1d", "text.layers.0.linear_attn.norm", "text.layers.0.input_layernorm",
          "text.embed_tokens", "text.norm", "lm_head", "visual.blocks.0.attn.qkv", "visual.blocks.0.mlp.linear_fc1",
          "visual.merger.linear_fc2", "head.layers.0.linear1", "mtp.layers.0.mlp.up_proj"})
      CHECK(!is_converted(format, module));
  }
}

TEST_CASE("conversion: NF4 converts every Linear but lm_head, those of the vision tower included") {
  for (const char* module :
       {"text.layers.0.linear_attn.in_proj_a", "text.layers.3.self_attn.q_proj", "text.layers.0.mlp.down_proj",
        "visual.blocks.26.attn.qkv", "visual.blocks.0.attn.proj", "visual.blocks.0.mlp.linear_fc1",
        "visual.blocks.0.mlp.linear_fc2", "visual.merger.linear_fc1", "visual.merger.linear_fc2"})
    CHECK(is_converted(QuantizeFormat::kNf4, module));
  for (const char* module : {"lm_head", "text.embed_tokens", "visual.pos_embed", "visual.patch_embed.proj",
                             "visual.merger.norm", "text.layers.0.linear_attn.conv1d", "head.memory_projection"})
    CHECK(!is_converted(QuantizeFormat::kNf4, module));
}

TEST_CASE("conversion: a pattern stands for whole names, its stars for dots too") {
  CHECK(matches_pattern("*.down_proj", "text.layers.3.mlp.down_proj"));
  CHECK(matches_pattern("text.layers.0.*", "text.layers.0.mlp.down_proj"));
  CHECK(matches_pattern("text.layers.[01].mlp.*", "text.layers.1.mlp.up_proj"));
  CHECK(!matches_pattern("text.layers.0.*", "text.layers.10.mlp.down_proj"));
  CHECK(!matches_pattern("down_proj", "text.layers.3.mlp.down_proj"));
  CHECK(!matches_pattern("", "text"));
}

}  // namespace
}  // namespace treble
