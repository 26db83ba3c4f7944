#include "quantize/conversion.h"

#include <fnmatch.h>

#include <algorithm>

namespace treble {
namespace {

constexpr std::string_view kLargeTextLinears[] = {
    ".self_attn.q_proj",     ".self_attn.k_proj",        ".self_attn.v_proj",
    ".self_attn.o_proj",     ".linear_attn.in_proj_qkv", ".linear_attn.in_proj_z",
    ".linear_attn.out_proj", ".mlp.gate_proj",           ".mlp.up_proj",
    ".mlp.down_proj"};
constexpr std::string_view kSmallTextLinears[] = {".linear_attn.in_proj_a", ".linear_attn.in_proj_b"};
constexpr std::string_view kVisionLinears[] = {".attn.qkv", ".attn.proj", ".linear_fc1", ".linear_fc2"};

template <typename Suffixes>
bool ends_with_any(std::string_view name, const Suffixes& suffixes) {
  return std::ranges::any_of(suffixes, [&](std::string_view suffix) { return name.ends_with(suffix); });
}

}  // namespace

std::string_view to_string(QuantizeFormat format) {
  switch (format) {
    case QuantizeFormat::kInt8Convrot:
      return "int8-convrot";
    case QuantizeFormat::kInt8:
      return "int8";
    default:
      return "nf4";
  }
}

bool is_converted(QuantizeFormat format, std::string_view module) {
  if (module.starts_with("text.layers."))
    return ends_with_any(module, kLargeTextLinears) ||
           (format == QuantizeFormat::kNf4 && ends_with_any(module, kSmallTextLinears));
  return format == QuantizeFormat::kNf4 && module.starts_with("visual.") && ends_with_any(module, kVisionLinears);
}

bool matches_pattern(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace treble
