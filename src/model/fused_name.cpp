#include "model/fused_name.h"

namespace treble {

std::optional<FusedName> fused_name(std::string_view name) {
  struct Part {
    std::string_view part, whole;
    int from_end;
  };
  constexpr Part kParts[] = {
      {"mlp.gate_proj", "mlp.gate_up_proj", 0},
      {"mlp.up_proj", "mlp.gate_up_proj", 1},
      {"linear_attn.in_proj_qkv", "linear_attn.in_proj_qkvz", 0},
      {"linear_attn.in_proj_z", "linear_attn.in_proj_qkvz", 1},
      {"self_attn.q_proj", "self_attn.qkv_proj", 0},
      {"self_attn.k_proj", "self_attn.qkv_proj", 2},
      {"self_attn.v_proj", "self_attn.qkv_proj", 1},
  };
  for (const auto& [part, whole, from_end] : kParts) {
    if (name.ends_with(part))
      return FusedName{std::string(name.substr(0, name.size() - part.size())).append(whole), from_end};
  }
  return std::nullopt;
}

}  // namespace treble
