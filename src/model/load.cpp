#include <fmt/format.h>
#include <treble/error.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <unordered_set>

#include "base/mapped_file.h"
#include "base/parallel.h"
#include "checkpoint/read_linear.h"
#include "checkpoint/storage_format.h"
#include "checkpoint/tensor_names.h"
#include "model/fused_name.h"
#include "model/quantizing_source.h"
#include "model/weights.h"
#include "ops/planner.h"
#include "quant/rotation_check.h"
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
  CheckpointSource(std::shared_ptr<const Checkpoint> checkpoint, const LoadProgress& progress)
      : checkpoint_(std::move(checkpoint)), progress_(progress) {
    for (const Checkpoint::Entry& entry : checkpoint_->entries()) {
      by_name_.emplace(entry.name, &entry);
      total_bytes_ += entry.view.num_bytes();
    }
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
    if (!has_module(name)) {
      if (const std::optional<FusedName> fused = fused_name(name); fused && has_module(fused->module))
        return fused_linear(*fused, name, out_features, in_features);
    }
    const std::optional<LinearWeight> linear = quantized_linear(name);
    if (!linear) return WeightSource::linear(name, out_features, in_features, has_bias);
    if (linear->out_features() != out_features || linear->in_features() != in_features)
      fail(name, fmt::format("is [{}, {}], the configuration implies [{}, {}]", linear->out_features(),
                             linear->in_features(), out_features, in_features));
    if (has_bias && !linear->bias) fail(name, "has no bias; is the download complete?");
    return *linear;
  }

  float scalar(const std::string& name) override {
    const Checkpoint::Entry& entry = find(name, "[]");
    if (entry.view.num_elements() != 1) fail(entry, fmt::format("is {}, expected one number", entry.view.describe()));
    const float value = element(entry.view, 0);
    if (!std::isfinite(value)) fail(entry, fmt::format("is {}, expected a finite number", value));
    return value;
  }

  using WeightSource::release;
  void release(const TensorView& tensor) override {
    // Rows of a fused projection: the others may still be asked for, or placed.
    const auto holds_it = [&](const auto& module) { return module.second && holds(*module.second, tensor); };
    if (std::any_of(fused_.begin(), fused_.end(), holds_it)) return;
    const auto num_copies = std::erase_if(copies_, [&](const auto& copy) { return copy.get() == tensor.data(); });
    if (num_copies == 0) drop_resident_pages(tensor.data(), tensor.num_bytes());  // it lies in a file
  }

  std::optional<FileRange> file_range(const TensorView& tensor) const override {
    for (const SafetensorsFile& file : checkpoint_->files())
      if (const std::optional<FileRange> range = file.range_of(tensor)) return range;
    return std::nullopt;
  }

  bool has(const std::string& name) const override { return has_module(name); }

  /// Everything is where it belongs, also what the configuration leaves out.
  void report_end() const {
    if (progress_) progress_(total_bytes_, total_bytes_);
  }

  /// A tensor that nothing asked for is an error, as are rows of a fused projection: a bias, a scale or an adapter left
  /// out would answer plausibly and wrongly. What a configuration leaves out as a whole is left out here too: the
  /// vision tower, and the copy of a tied output embedding.
  void check_used_up(const ModelConfig& config) const {
    for (const auto& [name, rows] : unread_rows_)
      if (rows != 0) fail(name, fmt::format("has {} rows more than the projections that it is made of", rows));
    for (const Checkpoint::Entry& entry : checkpoint_->entries()) {
      if (used_.contains(entry.name)) continue;
      if (entry.name.starts_with("head."))
        fail(entry, "is not a tensor of the joint head; does joint_head_config.json belong to this file?");
      if (entry.name.starts_with("visual.") && !config.vision) continue;
      if (entry.name == "lm_head.weight" && config.tie_word_embeddings) continue;
      fail(entry,
           "is no tensor that config.json implies, nor one that the format of its module knows; it cannot be left out "
           "safely: use the release's own files, or merge what was added to them");
    }
  }

  std::vector<std::shared_ptr<const void>> storage() const {
    std::vector<std::shared_ptr<const void>> all(copies_.begin(), copies_.end());
    all.push_back(checkpoint_);
    return all;
  }

 private:
  /// Whether a tensor lies in one of a Linear's.
  static bool holds(LinearWeight linear, const TensorView& tensor) {
    return std::ranges::any_of(linear.tensors(), [&](const TensorView* whole) {
      const auto *begin = static_cast<const std::byte*>(whole->data()),
                 *at = static_cast<const std::byte*>(tensor.data());
      return *whole && std::less_equal<>()(begin, at) && std::less<>()(at, begin + whole->num_bytes());
    });
  }

  bool has_module(const std::string& name) const {
    const auto found = by_name_.lower_bound(name + ".");
    return found != by_name_.end() && found->first.starts_with(name + ".");
  }

  LinearWeight fused_linear(const FusedName& fused, const std::string& name, std::int64_t out_features,
                            std::int64_t in_features) {
    auto found = fused_.find(fused.module);  // read once: it may be a copy
    if (found == fused_.end()) found = fused_.emplace(fused.module, quantized_linear(fused.module)).first;
    const std::optional<LinearWeight>& linear = found->second;
    if (!linear) fail(fused.module, "is a fused projection in plain weights, which no known release has");
    const std::int64_t num_rows = linear->out_features(), begin = fused.from_end * out_features;
    const std::int64_t first = fused.from_end == 0 ? 0 : num_rows - begin;
    if (linear->in_features() != in_features || first < 0 || first + out_features > num_rows)
      fail(fused.module, fmt::format("is [{}, {}], expected it to hold \"{}\" [{}, {}]", num_rows,
                                     linear->in_features(), name, out_features, in_features));
    unread_rows_.try_emplace(fused.module, num_rows).first->second -= out_features;
    return linear->rows(first, first + out_features);
  }

  /// nullopt if the module is not quantised, or not there.
  std::optional<LinearWeight> quantized_linear(const std::string& name) {
    ModuleParts parts;
    std::string where;
    const std::string prefix = name + ".";
    for (auto it = by_name_.lower_bound(prefix); it != by_name_.end() && it->first.starts_with(prefix); ++it) {
      parts.emplace(it->first.substr(prefix.size()), it->second->view);
      where = fmt::format("checkpoint: {}: {}", it->second->file.string(), quote_name(name));
    }
    if (parts.empty()) return std::nullopt;
    const StorageFormat format = recognise_format(parts);
    if (!format.is_quantized) return std::nullopt;
    for (const auto& [part, view] : parts) use(prefix + part, view);  // the reader refuses what it does not know
    ModuleTensors tensors(where, std::move(parts));
    const LinearWeight linear = read_quantized_linear(format, checkpoint_->quantization(name), tensors);
    if (linear.format == WeightFormat::kInt8) check_rotation(linear, tensors);
    copies_.insert(copies_.end(), tensors.storage().begin(), tensors.storage().end());
    return linear;
  }

  /// A Linear that says the wrong thing of its rotation would answer plausibly and wrongly.
  static void check_rotation(const LinearWeight& linear, const ModuleTensors& tensors) {
    const std::int64_t claimed = linear.int8.rotation_group, likely = likely_rotation_group(linear);
    const auto text = [](std::int64_t group) {
      return group == 1 ? std::string("not rotated") : fmt::format("rotated in groups of {}", group);
    };
    if (likely != claimed)
      tensors.fail(
          fmt::format("has int8 codes that look {}, the file says {}; ask its publisher", text(likely), text(claimed)));
  }

  const Checkpoint::Entry& find(const std::string& name, const std::string& shape) {
    const Checkpoint::Entry* entry = checkpoint_->find(name);
    if (!entry)
      throw Error(ErrorCode::kCheckpoint,
                  fmt::format("checkpoint: {} has no tensor \"{}\" {}; is the download complete?",
                              checkpoint_->folder().string(), name, shape));
    if (!is_floating(entry->view.dtype()))
      fail(*entry, fmt::format("is {}; this engine reads bf16, f16, f32 and f64 weights", entry->view.describe()));
    use(name, entry->view);
    return *entry;
  }

  /// Says how far the loading has come: what was asked for before this is placed.
  void use(const std::string& name, const TensorView& view) {
    if (!used_.insert(name).second) return;
    if (progress_) progress_(done_bytes_, total_bytes_);
    done_bytes_ += view.num_bytes();
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

  [[noreturn]] void fail(const std::string& module, const std::string& what) const {
    throw Error(ErrorCode::kCheckpoint,
                fmt::format("checkpoint: {}: {} {}", checkpoint_->folder().string(), quote_name(module), what));
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  const LoadProgress& progress_;
  std::uint64_t done_bytes_ = 0, total_bytes_ = 0;
  std::map<std::string_view, const Checkpoint::Entry*> by_name_;
  std::vector<std::shared_ptr<const void>> copies_;
  std::unordered_set<std::string> used_;
  std::map<std::string, std::optional<LinearWeight>> fused_;
  std::map<std::string, std::int64_t> unread_rows_;  // of fused projections
};

/// Keeps what a model's views point into.
void add_storage(const CheckpointSource& source, const QuantizingSource& quantizing, Model& model) {
  for (const auto& owner : source.storage()) model.storage.push_back(owner);
  for (const auto& owner : quantizing.storage()) model.storage.push_back(owner);
}

}  // namespace

bool has_vision_tower(const std::filesystem::path& folder) {
  if (!read_config(folder).vision) return false;
  const Checkpoint checkpoint(folder);
  return std::ranges::any_of(checkpoint.entries(),
                             [](const Checkpoint::Entry& entry) { return entry.name.starts_with("visual."); });
}

Model load_model(const std::filesystem::path& folder, Ops& ops, WeightConversion conversion,
                 const LoadProgress& progress, TowerLoading tower) {
  const ModelConfig config = read_config(folder);
  CheckpointSource source(std::make_shared<const Checkpoint>(folder), progress);
  QuantizingSource quantizing(source, conversion);
  WeightSource& chosen = conversion == WeightConversion::kNone ? static_cast<WeightSource&>(source) : quantizing;
  ModelConfig first = config;
  if (tower == TowerLoading::kLater) first.vision.reset();
  Model model = build_model(first, chosen, ops);
  if (config.vision && !first.vision && source.has("visual")) {
    const std::unique_ptr<Planner> planner = ops.make_planner();  // places nothing; neither does a host's backend
    Model looked_at;
    add_tower(*config.vision, source, planner ? *planner : ops, looked_at);
  }
  source.check_used_up(config);
  source.report_end();
  add_storage(source, quantizing, model);
  return model;
}

void load_tower(const std::filesystem::path& folder, Ops& ops, WeightConversion conversion, Model& model) {
  const ModelConfig config = read_config(folder);
  if (!config.vision) throw Error(ErrorCode::kInternal, "load: a release without a vision tower has none to add");
  const LoadProgress progress;
  CheckpointSource source(std::make_shared<const Checkpoint>(folder), progress);
  QuantizingSource quantizing(source, conversion);
  add_tower(*config.vision, conversion == WeightConversion::kNone ? static_cast<WeightSource&>(source) : quantizing,
            ops, model);
  add_storage(source, quantizing, model);
}

}  // namespace treble
