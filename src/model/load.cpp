#include <fmt/format.h>
#include <treble/error.h>

#include <cmath>
#include <map>
#include <unordered_set>

#include "base/parallel.h"
#include "checkpoint/storage_format.h"
#include "checkpoint/tensor_names.h"
#include "model/weights.h"
#include "quant/read_nf4.h"
#include "tensor/element.h"

namespace treble {
namespace {

std::string shape_text(std::initializer_list<std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

bool has_shape(const TensorView& view, std::initializer_list<std::int64_t> shape) {
  if (view.rank() != static_cast<int>(shape.size())) return false;
  int dim = 0;
  for (const std::int64_t size : shape)
    if (view.size(dim++) != size) return false;
  return true;
}

/// The tensors of a release folder as bf16, in place wherever the file already holds them so.
class CheckpointSource final : public WeightSource {
 public:
  explicit CheckpointSource(std::shared_ptr<const Checkpoint> checkpoint) : checkpoint_(std::move(checkpoint)) {
    for (const Checkpoint::Entry& entry : checkpoint_->entries()) by_name_.emplace(entry.name, &entry);
  }

  TensorView tensor(const std::string& name, std::initializer_list<std::int64_t> shape) override {
    const Checkpoint::Entry& entry = find(name, shape_text(shape));
    if (!has_shape(entry.view, shape))
      fail(entry, fmt::format("is {}, the configuration implies {}", entry.view.describe(), shape_text(shape)));
    const bool aligned = reinterpret_cast<std::uintptr_t>(entry.view.data()) % alignof(bfloat16) == 0;
    return entry.view.dtype() == DType::kBF16 && aligned ? entry.view : rounded_copy(entry.view);
  }

  LinearWeight linear(const std::string& name, std::int64_t out_features, std::int64_t in_features,
                      bool has_bias) override {
    ModuleParts parts;
    std::string where;
    const std::string prefix = name + ".";
    for (auto it = by_name_.lower_bound(prefix); it != by_name_.end() && it->first.starts_with(prefix); ++it) {
      parts.emplace(it->first.substr(prefix.size()), it->second->view);
      where = fmt::format("checkpoint: {}: {}", it->second->file.string(), quote_name(name));
    }
    const StorageFormat format = parts.empty() ? StorageFormat{} : recognise_format(parts);
    if (!format.is_quantized) return WeightSource::linear(name, out_features, in_features, has_bias);
    ModuleTensors tensors(where, std::move(parts));
    const LinearWeight linear = read_quantized(format, tensors);
    if (linear.out_features() != out_features || linear.in_features() != in_features)
      tensors.fail(fmt::format("is [{}, {}], the configuration implies {}", linear.out_features(), linear.in_features(),
                               shape_text({out_features, in_features})));
    if (has_bias && !linear.bias) tensors.fail("has no bias; is the download complete?");
    copies_.insert(copies_.end(), tensors.storage().begin(), tensors.storage().end());
    return linear;
  }

  float scalar(const std::string& name) override {
    const Checkpoint::Entry& entry = find(name, "[]");
    if (entry.view.num_elements() != 1) fail(entry, fmt::format("is {}, expected one number", entry.view.describe()));
    const float value = element(entry.view, 0);
    if (!std::isfinite(value)) fail(entry, fmt::format("is {}, expected a finite number", value));
    return value;
  }

  /// The joint head is read strictly: a tensor of its file that nothing asked for is an error.
  void check_head_is_used_up() const {
    for (const Checkpoint::Entry& entry : checkpoint_->entries())
      if (entry.name.starts_with("head.") && !used_.contains(entry.name))
        fail(entry, "is not a tensor of the joint head; does joint_head_config.json belong to this file?");
  }

  std::vector<std::shared_ptr<const void>> storage() const {
    std::vector<std::shared_ptr<const void>> all(copies_.begin(), copies_.end());
    all.push_back(checkpoint_);
    return all;
  }

 private:
  static LinearWeight read_quantized(const StorageFormat& format, ModuleTensors& tensors) {
    if (format.name == "nf4") return read_nf4(tensors);
    if (!format.problem.empty()) tensors.fail(format.problem);
    tensors.fail(
        fmt::format("is stored as {}, which this version does not read; use a bf16 or nf4 release", format.name));
  }

  const Checkpoint::Entry& find(const std::string& name, const std::string& shape) {
    const Checkpoint::Entry* entry = checkpoint_->find(name);
    if (!entry)
      throw Error(ErrorCode::kCheckpoint,
                  fmt::format("checkpoint: {} has no tensor \"{}\" {}; is the download complete?",
                              checkpoint_->folder().string(), name, shape));
    if (!is_floating(entry->view.dtype()))
      fail(*entry, fmt::format("is {}; this engine reads bf16, f16, f32 and f64 weights", entry->view.describe()));
    used_.insert(name);
    return *entry;
  }

  TensorView rounded_copy(const TensorView& view) {
    const std::int64_t count = view.num_elements();
    std::shared_ptr<bfloat16[]> copy(new bfloat16[static_cast<std::size_t>(count)]);
    constexpr std::int64_t kGrain = 1 << 16;
    parallel_ranges(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) copy[static_cast<std::size_t>(i)] = to_bfloat16(element(view, i));
    });
    copies_.push_back(copy);
    std::array<std::int64_t, TensorView::kMaxRank> shape{};
    for (int dim = 0; dim < view.rank(); ++dim) shape[static_cast<std::size_t>(dim)] = view.size(dim);
    return TensorView(copy.get(), DType::kBF16, shape.data(), view.rank());
  }

  [[noreturn]] static void fail(const Checkpoint::Entry& entry, const std::string& what) {
    throw Error(ErrorCode::kCheckpoint,
                fmt::format("checkpoint: {}: \"{}\" {}", entry.file.string(), entry.stored_name, what));
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  std::map<std::string_view, const Checkpoint::Entry*> by_name_;
  std::vector<std::shared_ptr<const void>> copies_;
  std::unordered_set<std::string> used_;
};

}  // namespace

Model load_model(const std::filesystem::path& folder, Ops& ops) {
  const ModelConfig config = read_config(folder);
  CheckpointSource source(std::make_shared<const Checkpoint>(folder));
  Model model = build_model(config, source, ops);
  source.check_head_is_used_up();
  model.storage = source.storage();
  return model;
}

}  // namespace treble
