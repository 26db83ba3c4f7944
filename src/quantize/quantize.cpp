#include "quantize/quantize.h"

#include <fmt/format.h>
#include <treble/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "base/mapped_file.h"
#include "checkpoint/inspect.h"
#include "checkpoint/release_folder.h"
#include "checkpoint/shard_index.h"
#include "checkpoint/tensor_names.h"
#include "quant/encode_int8.h"
#include "quant/encode_nf4.h"
#include "quantize/output_folder.h"
#include "quantize/plan.h"

namespace treble {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_on_disk(const fs::path& path, const std::string& reason) {
  throw Error(ErrorCode::kDevice, fmt::format("file: {} cannot be written: {}", path.string(), reason));
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out) fail_on_disk(path, "is the disk full?");
}

/// A release that is read must not lie where the new one is written, nor the other way round.
void check_apart(const fs::path& release, const fs::path& out) {
  std::error_code error;
  const fs::path from = fs::weakly_canonical(release, error);
  if (error) throw Error(ErrorCode::kCheckpoint, fmt::format("quantize: {}: {}", release.string(), error.message()));
  const fs::path to = fs::weakly_canonical(out, error);
  if (error)
    throw Error(ErrorCode::kArgument,
                fmt::format("quantize: {} cannot be written: {}; name another folder", out.string(), error.message()));
  const auto is_inside = [](const fs::path& inner, const fs::path& outer) {
    return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
  };
  if (is_inside(from, to) || is_inside(to, from))
    throw Error(ErrorCode::kArgument, fmt::format("quantize: {} and {} lie in each other; write to a folder elsewhere",
                                                  release.string(), out.string()));
}

std::string shard_name(std::size_t number, std::size_t count) {
  return count == 1 ? kSingleFile : fmt::format("model-{:05}-of-{:05}.safetensors", number + 1, count);
}

/// Writes the shards of a plan.
class ShardWriter {
 public:
  ShardWriter(const QuantizeOptions& options, const QuantizePlan& plan, const QuantizeProgress& progress)
      : options_(options), plan_(plan), progress_(progress) {}

  void write_all(const fs::path& folder) {
    report(0);
    for (std::size_t s = 0; s < plan_.shards.size(); ++s)
      write_shard(folder / shard_name(s, plan_.shards.size()), plan_.shards[s]);
    if (plan_.shards.size() > 1) write_text(folder / kIndexFile, index() + "\n");
  }

 private:
  void write_shard(const fs::path& path, const std::vector<PlannedConversion>& conversions) {
    std::vector<PlannedTensor> tensors;
    std::vector<std::string> texts;
    for (const PlannedConversion& conversion : conversions) {
      tensors.insert(tensors.end(), conversion.tensors.begin(), conversion.tensors.end());
      if (!conversion.text.empty()) texts.push_back(conversion.text);
    }
    SafetensorsWriter writer(path, std::move(tensors), std::move(texts));
    for (const PlannedConversion& conversion : conversions) {
      if (conversion.is_converted()) {
        convert(conversion, writer);
      } else {
        copy(*conversion.source, writer);
      }
    }
    writer.finish();
  }

  void copy(const SafetensorsFile::Tensor& tensor, SafetensorsWriter& writer) {
    constexpr std::size_t kPiece = std::size_t{32} << 20;
    const auto* data = static_cast<const std::byte*>(tensor.view.data());
    for (std::size_t begin = 0; begin < tensor.view.num_bytes(); begin += kPiece) {
      const std::size_t size = std::min(kPiece, tensor.view.num_bytes() - begin);
      writer.write(tensor.name, begin, {data + begin, size});
      drop_resident_pages(data + begin, size);
      report(size);
    }
  }

  void convert(const PlannedConversion& conversion, SafetensorsWriter& writer) {
    const TensorView& weight = conversion.source->view;
    const std::string where = fmt::format("quantize: {}", quote_name(conversion.module));
    if (options_.format == QuantizeFormat::kNf4) {
      write_nf4(conversion, encode_nf4(weight, {.block_size = group_size_of(options_), .is_double = true}, where),
                writer);
    } else {
      write_int8(conversion, encode_int8(weight, group_size_of(options_), where), writer);
    }
    drop_resident_pages(weight.data(), weight.num_bytes());
    report(weight.num_bytes());
  }

  void write_int8(const PlannedConversion& conversion, const EncodedLinear& encoded, SafetensorsWriter& writer) const {
    put(conversion.module + ".weight", encoded.linear.weight, writer);
    put(conversion.module + ".weight_scale", encoded.linear.int8.row_scale, writer);
    const bool is_rotated = encoded.linear.int8.rotation_group > 1;
    writer.set_text(conversion.text,
                    is_rotated
                        ? fmt::format(R"({{"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": {}}})",
                                      encoded.linear.int8.rotation_group)
                        : R"({"format": "int8_tensorwise", "convrot": false})");
  }

  void write_nf4(const PlannedConversion& conversion, const EncodedLinear& encoded, SafetensorsWriter& writer) const {
    const Nf4& nf4 = encoded.linear.nf4;
    const std::string weight = conversion.module + ".weight";
    put(weight, encoded.linear.weight, writer);
    put(weight + ".absmax", nf4.absmax, writer);
    put(weight + ".quant_map", nf4.code_values, writer);
    put(weight + ".nested_absmax", nf4.nested_absmax, writer);
    put(weight + ".nested_quant_map", nf4.nested_values, writer);
    writer.set_text(conversion.text, nf4_quant_state(nf4));
  }

  static void put(const std::string& name, const TensorView& view, SafetensorsWriter& writer) {
    writer.write(name, 0, {static_cast<const std::byte*>(view.data()), view.num_bytes()});
  }

  /// As Transformers writes it: tensors by name.
  std::string index() const {
    std::map<std::string, std::string> shard_of;
    for (std::size_t s = 0; s < plan_.shards.size(); ++s) {
      for (const PlannedConversion& conversion : plan_.shards[s]) {
        const std::string shard = shard_name(s, plan_.shards.size());
        for (const PlannedTensor& tensor : conversion.tensors) shard_of.emplace(tensor.name, shard);
        if (!conversion.text.empty()) shard_of.emplace(conversion.text, shard);
      }
    }
    Json::Object weight_map;
    for (const auto& [name, shard] : shard_of) weight_map.emplace_back(name, shard);
    const auto total = static_cast<long long>(plan_.summary.bytes_after);
    return dump_json_pretty(Json::Object{{"metadata", Json::Object{{"total_size", Json::integer(total)}}},
                                         {"weight_map", std::move(weight_map)}});
  }

  void report(std::uint64_t more_bytes) {
    done_bytes_ += more_bytes;
    if (progress_) progress_(done_bytes_, plan_.summary.bytes_before);
  }

  const QuantizeOptions& options_;
  const QuantizePlan& plan_;
  const QuantizeProgress& progress_;
  std::uint64_t done_bytes_ = 0;
};

/// What Transformers needs to know to load the release with bitsandbytes.
Json bitsandbytes_config(const std::vector<std::string>& kept_modules) {
  Json::Array skipped{"lm_head"};
  for (const std::string& module : kept_modules) skipped.emplace_back(module);
  return Json::Object{{"_load_in_4bit", true},
                      {"_load_in_8bit", false},
                      {"bnb_4bit_compute_dtype", "bfloat16"},
                      {"bnb_4bit_quant_storage", "uint8"},
                      {"bnb_4bit_quant_type", "nf4"},
                      {"bnb_4bit_use_double_quant", true},
                      {"llm_int8_enable_fp32_cpu_offload", false},
                      {"llm_int8_has_fp16_weight", false},
                      {"llm_int8_skip_modules", std::move(skipped)},
                      {"llm_int8_threshold", Json::real(6)},
                      {"load_in_4bit", true},
                      {"load_in_8bit", false},
                      {"quant_method", "bitsandbytes"}};
}

/// config.json with a quantization_config.
std::string with_bitsandbytes_config(const fs::path& config_file, const std::vector<std::string>& kept_modules) {
  Json config = parse_json(read_text_file(config_file), fmt::format("checkpoint: {}", config_file.string()),
                           ErrorCode::kCheckpoint);
  if (!config.is_object())
    throw Error(ErrorCode::kCheckpoint,
                fmt::format("checkpoint: {} is {}, expected an object", config_file.string(), config.type_name()));
  std::erase_if(config.as_object(), [](const Json::Member& member) { return member.first == "quantization_config"; });
  config.as_object().emplace_back("quantization_config", bitsandbytes_config(kept_modules));
  return dump_json_pretty(config) + "\n";
}

/// Files and folders that are copied as they are, every folder before what it holds; paths count from the release.
class OtherFiles {
 public:
  /// Looks at everything before anything is written. @throws Error kCheckpoint naming what cannot be copied
  OtherFiles(const fs::path& release, const std::set<std::string>& left_out) : release_(release) {
    for (const fs::path& path : list(release)) {
      const std::string name = path.filename().string();
      std::error_code ignored;
      if (!left_out.contains(name) && !(name.starts_with('.') && fs::is_directory(path, ignored))) add(path);
    }
  }

  /// @throws Error kDevice
  void copy_to(const fs::path& folder) const {
    for (const auto& [path, is_folder] : paths_) {
      std::error_code error;
      const fs::path copy = folder / path;
      if (is_folder) {
        fs::create_directory(copy, error);
      } else {
        fs::copy_file(release_ / path, copy, error);  // what a link names, not the link
      }
      if (error) fail_on_disk(copy, error.message());
    }
  }

 private:
  static std::vector<fs::path> list(const fs::path& folder) {
    std::vector<fs::path> paths;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      paths.push_back(it->path());
    if (error) refuse(folder, error.message());
    return paths;
  }

  void add(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) refuse(path, "it is a link to nothing");
    if (error) refuse(path, error.message());
    const bool is_folder = fs::is_directory(status);
    // A link may lead out of the release, or to a folder that holds the link.
    if (is_folder && fs::is_symlink(path, error)) refuse(path, "it is a link to a folder");
    if (!is_folder && !fs::is_regular_file(status)) refuse(path, "it is neither a file nor a folder");
    if (::access(path.c_str(), is_folder ? R_OK | X_OK : R_OK) != 0)
      refuse(path, std::generic_category().message(errno));
    paths_.emplace_back(path.lexically_relative(release_), is_folder);
    if (!is_folder) return;
    for (const fs::path& inner : list(path)) add(inner);
  }

  [[noreturn]] static void refuse(const fs::path& path, const std::string& reason) {
    throw Error(ErrorCode::kCheckpoint,
                fmt::format("quantize: {} cannot be read: {}; all files of a release are copied: move it elsewhere or "
                            "make it readable",
                            path.string(), reason));
  }

  const fs::path release_;
  std::vector<std::pair<fs::path, bool>> paths_;
};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Of two sets of weights in one folder, the one that is not read would be copied beside the new weights.
void check_one_set_of_weights(const fs::path& release) {
  if (is_there(release / kSingleFile) && is_there(release / kIndexFile))
    throw Error(ErrorCode::kCheckpoint, fmt::format("quantize: {} holds {} and the shards of {}; keep one of the two",
                                                    release.string(), kSingleFile, kIndexFile));
}

/// A release that answers nothing makes one that answers nothing: better said before hours of work. What only media
/// need may be missing, as in releases that read text.
void check_usable(const fs::path& release) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kCheckpoint,
                fmt::format("quantize: {} {}; `treble inspect` lists all that it lacks", release.string(), what));
  };
  const ReleaseSummary summary = inspect_release(release);
  for (const std::string& name : summary.missing_files)
    if (name != "processor_config.json") fail(fmt::format("has no {}", name));
  if (!summary.problems.empty()) fail(fmt::format("cannot be used as it is: {}", summary.problems.front()));
  const auto is_needed = [](const std::string& name) { return !name.starts_with("visual."); };
  if (const auto found = std::ranges::find_if(summary.missing_tensors, is_needed);
      found != summary.missing_tensors.end())
    fail(fmt::format("has no tensor {}", quote_name(*found)));
  if (const auto found = std::ranges::find_if(summary.unknown_tensors, is_needed);
      found != summary.unknown_tensors.end())
    fail(fmt::format("holds a tensor {} that config.json does not imply", quote_name(*found)));
}

/// The names of the files that hold the weights of the backbone, the index included.
std::set<std::string> weight_files(const Checkpoint& checkpoint) {
  std::set<std::string> names{kSingleFile, kIndexFile};
  for (const SafetensorsFile& file : checkpoint.files())
    if (file.path().filename() != kHeadFile) names.insert(file.path().filename().string());
  return names;
}

void check_space(const fs::path& folder, std::uint64_t needed) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < needed)
    fail_on_disk(folder, fmt::format("{} bytes are free there, the weights need {}", space.available, needed));
}

}  // namespace

QuantizeSummary quantize_release(const QuantizeOptions& options, const QuantizeProgress& progress) {
  if (options.out.empty()) throw Error(ErrorCode::kArgument, "quantize: --out is empty; name a folder");
  check_release_folder(options.release);
  check_apart(options.release, options.out);
  check_one_set_of_weights(options.release);
  const Checkpoint checkpoint(options.release);
  const QuantizePlan plan = plan_quantization(checkpoint, options);
  check_usable(options.release);
  std::set<std::string> left_out = weight_files(checkpoint);
  if (options.format == QuantizeFormat::kNf4) left_out.insert("config.json");
  const OtherFiles other_files(options.release, left_out);

  OutputFolder out(options.out, options.is_replaced);
  check_space(out.partial(), plan.summary.bytes_after);
  if (options.format == QuantizeFormat::kNf4)
    write_text(out.partial() / "config.json",
               with_bitsandbytes_config(options.release / "config.json", plan.kept_modules));
  other_files.copy_to(out.partial());
  ShardWriter(options, plan, progress).write_all(out.partial());
  out.publish();
  return plan.summary;
}

}  // namespace treble
