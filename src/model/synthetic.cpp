#include "model/synthetic.h"

#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <new>
#include <span>
#include <string>

#include "base/parallel.h"
#include "model/quantizing_source.h"
#include "quant/allocate.h"
#include "tensor/bfloat16.h"

namespace treble {
namespace {

struct TowerSize {
  std::int64_t hidden_size, intermediate_size, depth, heads;
};

struct Size {
  std::string_view name;
  std::int64_t hidden_size, intermediate_size, layers, q_heads, kv_heads, v_heads;
  bool tied;
  TowerSize tower;
};

constexpr TowerSize kLargeTower = {1152, 4304, 27, 16}, kMiddleTower = {1024, 4096, 24, 16},
                    kSmallTower = {768, 3072, 12, 12};

// As published in the config.json of each size.
constexpr Size kSizes[] = {
    {"27b", 5120, 17408, 64, 24, 4, 48, false, kLargeTower}, {"9b", 4096, 12288, 32, 16, 4, 32, false, kLargeTower},
    {"4b", 2560, 9216, 32, 16, 4, 32, true, kMiddleTower},   {"2b", 2048, 6144, 24, 8, 2, 16, true, kMiddleTower},
    {"0.8b", 1024, 3584, 24, 8, 2, 16, true, kSmallTower},
};

constexpr std::int64_t kHeadWidth = 1024, kHeadFeedforward = 4096;

ModelConfig to_config(const Size& size) {
  ModelConfig config;
  TextConfig& text = config.text;
  text.hidden_size = size.hidden_size;
  text.intermediate_size = size.intermediate_size;
  text.num_hidden_layers = size.layers;
  text.num_attention_heads = size.q_heads;
  text.num_key_value_heads = size.kv_heads;
  text.linear_num_value_heads = size.v_heads;
  text.max_position_embeddings = 262144;
  text.layer_types = regular_layer_types(size.layers);
  config.vision = VisionConfig{.depth = size.tower.depth,
                               .hidden_size = size.tower.hidden_size,
                               .intermediate_size = size.tower.intermediate_size,
                               .num_heads = size.tower.heads,
                               .out_hidden_size = size.hidden_size};
  config.tie_word_embeddings = size.tied;
  config.head = {size.hidden_size, kHeadWidth, 2, 4, 16, kHeadFeedforward};
  return config;
}

/// "8x1024": the proportions of the published sizes at another width.
bool parse_custom(std::string_view text, Size& size) {
  const std::size_t cross = text.find('x');
  if (cross == std::string_view::npos) return false;
  const auto parse = [](std::string_view digits, std::int64_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  std::int64_t layers = 0, hidden = 0;
  if (!parse(text.substr(0, cross), layers) || !parse(text.substr(cross + 1), hidden)) return false;
  if (layers < 1 || layers > 256 || hidden < 256 || hidden > 16384 || hidden % 256 != 0) return false;
  const std::int64_t kv_heads = std::max<std::int64_t>(1, hidden / 1024);
  const std::int64_t v_heads = 16 * std::max<std::int64_t>(1, hidden / 2048);
  const std::int64_t width = hidden / 4 * 3;
  const TowerSize tower = {width, 4 * width, std::max<std::int64_t>(1, layers / 2), width / 64};
  size = {text, hidden, hidden / 256 * 896, layers, kv_heads * 4, kv_heads, v_heads, true, tower};
  return true;
}

/// One step of splitmix64: the i-th random number without the ones before it.
std::uint64_t random_bits(std::uint64_t i) {
  std::uint64_t z = i * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// Makes each tensor when it is asked for. Matrices are uniform with the variance that keeps activations near one;
/// vectors are small, so that norms keep gains near one and decays are moderate.
class RandomSource final : public WeightSource {
 public:
  /// @param conversion  Linears that it makes codes are drawn as codes: quantising as many weights takes minutes
  RandomSource(WeightConversion conversion, const LoadProgress& progress)
      : conversion_(conversion), progress_(progress) {}

  LinearWeight linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                      bool has_bias) override {
    const LinearEncoding encoding = encoding_of(name, in_features, conversion_);
    if (encoding.format == WeightFormat::kNf4) return nf4_linear(out_features, in_features, has_bias);
    if (encoding.format != WeightFormat::kInt8 || has_bias)
      return WeightSource::linear(name, out_features, in_features, has_bias);
    LinearWeight linear;
    linear.format = WeightFormat::kInt8;
    linear.weight = allocate_kept(DType::kI8, {out_features, in_features}, storage);
    draw_codes({linear.weight.as<std::int8_t>(), static_cast<std::size_t>(linear.weight.num_elements())});
    linear.int8.rotation_group = encoding.rotation_group;
    linear.int8.row_scale = allocate_kept(DType::kF32, {out_features}, storage);
    std::fill_n(linear.int8.row_scale.as<float>(), out_features,
                1 / (kCodeDeviation * std::sqrt(static_cast<float>(in_features))));
    return linear;
  }

  TensorView tensor(const std::string&, std::initializer_list<std::int64_t> shape) override {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    const std::int64_t inputs = shape.size() > 1 ? *(shape.end() - 1) : 256;
    const float range = std::sqrt(3.0f / static_cast<float>(inputs));

    std::shared_ptr<bfloat16[]> values(new (std::nothrow) bfloat16[static_cast<std::size_t>(count)]);
    if (!values)
      throw Error(
          ErrorCode::kDevice,
          fmt::format("bench: no {} MiB of memory left for synthetic weights; choose a smaller size", count >> 19));
    const std::uint64_t start = drawn_;
    constexpr std::int64_t kGrain = 1 << 18;
    parallel_ranges(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += 4) {  // four 16-bit numbers a draw
        const std::uint64_t bits = random_bits(start + static_cast<std::uint64_t>(i));
        for (std::int64_t j = 0; j < 4 && i + j < end; ++j) {
          const auto number = static_cast<std::int16_t>(bits >> (16 * j));
          values[static_cast<std::size_t>(i + j)] = to_bfloat16(static_cast<float>(number) * (range / 32768.0f));
        }
      }
    });
    drawn_ += static_cast<std::uint64_t>(count);
    if (progress_) progress_(drawn_ * sizeof(bfloat16), 0);
    storage.push_back(values);
    return TensorView(values.get(), DType::kBF16, shape.begin(), static_cast<int>(shape.size()));
  }

  float scalar(const std::string&) override { return 0; }
  bool has(const std::string&) const override { return true; }

  void release(const TensorView& tensor) override {
    std::erase_if(storage, [&](const auto& kept) { return kept.get() == tensor.data(); });
  }
  void release(const LinearWeight& linear) override {
    LinearWeight views = linear;
    for (const TensorView* view : views.tensors())
      if (*view && linear.format != WeightFormat::kDense) release(*view);
  }

  std::vector<std::shared_ptr<const void>> storage;

 private:
  /// Codes are uniform; scales of blocks, doubly quantised, are uniform around a mean that keeps activations near one.
  LinearWeight nf4_linear(std::int64_t out_features, std::int64_t in_features, bool has_bias) {
    LinearWeight linear;
    linear.format = WeightFormat::kNf4;
    Nf4& nf4 = linear.nf4;
    nf4.out_features = out_features;
    nf4.in_features = in_features;
    const std::int64_t count = out_features * in_features, num_blocks = num_blocks_of(count, nf4.block_size);
    linear.weight = draw_bytes(num_blocks_of(count, 2));
    nf4.code_values = allocate_kept(DType::kF32, {std::ssize(kNf4Values)}, storage);
    std::ranges::copy(kNf4Values, nf4.code_values.as<float>());
    nf4.absmax = draw_bytes(num_blocks);
    nf4.nested_values = allocate_kept(DType::kF32, {256}, storage);
    for (int i = 0; i < 256; ++i) nf4.nested_values.as<float>()[i] = static_cast<float>(i - 127) / 128;
    float squares = 0;
    for (const float value : kNf4Values) squares += value * value / static_cast<float>(kNf4Values.size());
    nf4.nested_offset = 1 / std::sqrt(squares * static_cast<float>(in_features));
    nf4.nested_absmax = allocate_kept(DType::kF32, {num_blocks_of(num_blocks, nf4.nested_block_size)}, storage);
    std::fill_n(nf4.nested_absmax.as<float>(), nf4.nested_absmax.size(0), nf4.nested_offset / 4);
    if (has_bias) linear.bias = tensor("", {out_features});
    return linear;
  }

  TensorView draw_bytes(std::int64_t count) {
    const TensorView bytes = allocate_kept(DType::kU8, {count}, storage);
    const std::uint64_t start = drawn_;
    constexpr std::int64_t kGrain = 1 << 18, kDrawn = sizeof(std::uint64_t);
    parallel_ranges(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += kDrawn) {
        const std::uint64_t bits = random_bits(start + static_cast<std::uint64_t>(i));
        std::memcpy(bytes.as<std::uint8_t>() + i, &bits, static_cast<std::size_t>(std::min(kDrawn, end - i)));
      }
    });
    drawn_ += static_cast<std::uint64_t>(count);
    if (progress_) progress_(drawn_ * sizeof(bfloat16), 0);
    return bytes;
  }

  // Of the mean of four uniform bytes: near normal, the largest code of a row a little above three deviations, as in
  // quantised weights.
  static constexpr float kCodeDeviation = 37;

  void draw_codes(std::span<std::int8_t> codes) {
    const std::uint64_t start = drawn_;
    constexpr std::int64_t kGrain = 1 << 18;
    parallel_ranges(std::ssize(codes), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; i += 2) {  // two a draw
        const std::uint64_t bits = random_bits(start + static_cast<std::uint64_t>(i));
        for (std::int64_t j = 0; j < 2 && i + j < end; ++j) {
          int sum = 0;
          for (int byte = 0; byte < 4; ++byte) sum += static_cast<std::int8_t>(bits >> (32 * j + 8 * byte));
          codes[static_cast<std::size_t>(i + j)] = static_cast<std::int8_t>(sum >> 2);
        }
      }
    });
    drawn_ += codes.size();
    if (progress_) progress_(drawn_ * sizeof(bfloat16), 0);
  }

  const WeightConversion conversion_;
  const LoadProgress& progress_;
  std::uint64_t drawn_ = 0;
};

}  // namespace

ModelConfig synthetic_config(std::string_view name) {
  for (const Size& size : kSizes)
    if (size.name == name) return to_config(size);
  Size custom{};
  if (parse_custom(name, custom)) return to_config(custom);
  throw Error(ErrorCode::kArgument,
              fmt::format("bench: --synthetic {} is no size; use 27b, 9b, 4b, 2b, 0.8b or LAYERSxHIDDEN with HIDDEN a "
                          "multiple of 256 from 256 to 16384, e.g. 8x1024",
                          name));
}

Model synthetic_model(const ModelConfig& config, Ops& ops, WeightConversion conversion, const LoadProgress& progress) {
  RandomSource source(conversion, progress);
  Model model = build_model(config, source, ops);
  model.storage = std::move(source.storage);
  return model;
}

}  // namespace treble
