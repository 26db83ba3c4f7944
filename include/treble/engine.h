#pragma once

#include <treble/int8_activations.h>
#include <treble/media_limits.h>
#include <treble/pretokenizer.h>
#include <treble/record.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace treble {

/// Type of the activations between operations. Sums are fp32 in both; weights stay as they are stored.
enum class Precision {
  kAuto,  ///< bf16 on GPUs, f32 on CPUs
  kF32,   ///< closest to the fp32 reference
  kBf16,  ///< the reference's own roundings
};

/// What a release's plain weights become while it is loaded. Which Linears are quantised, and how, is as in releases of
/// that format; the rotation's group is 256, or the largest power of four that divides a Linear's inputs if 256 does
/// not.
enum class WeightConversion {
  kNone,         ///< they stay as they are stored
  kInt8Convrot,  ///< 8-bit codes of rotated rows
  kInt8,         ///< the same without rotation
  kNf4,          ///< 4-bit codes with double quantisation
};

/// "as stored", "int8-convrot", "int8", "nf4".
std::string_view to_string(WeightConversion conversion);

/// Where a GPU's passes read the vocabulary tables, of which they need a few rows.
enum class Embeddings {
  kHost,    ///< in pinned memory of the host
  kDevice,  ///< in the device's memory
};

/// The kernels that a GPU runs.
enum class Kernels {
  kBest,  ///< the best for the device
  kSm80,  ///< those that every supported device runs: to compare with
};

/// What becomes of a release's vision tower.
enum class VisionTower {
  kAuto,      ///< a GPU takes memory for it when the first image or video comes; on CPUs as kResident
  kResident,  ///< it is loaded with the model
  kOff,       ///< it is not loaded, and images and videos are refused
};

/// Of GPUs, but for pass_tokens.
struct DeviceOptions {
  Embeddings embeddings = Embeddings::kHost;
  Kernels kernels = Kernels::kBest;
  /// The longest pass, 64 to 131,072 tokens, for which a GPU takes memory when a model is loaded. Records that are
  /// longer together go through in several passes; one that is longer, in pieces that carry keys, values and states,
  /// for which memory is taken when the first such record comes. 0: 16,384 on GPUs, or fewer where a record of
  /// max_tokens would not fit beside; as long as the records on CPUs, which take memory as they need it.
  std::int64_t pass_tokens = 0;
  /// The most bytes that the process may take of a GPU's memory; 0: what is free.
  std::uint64_t memory_limit = 0;
};

/// Told how far the loading of a model has come: bytes done, and in all; 0 in all where that is not known.
using LoadProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

struct EngineOptions {
  std::string device = "cpu";  ///< "cpu"; "cuda" or "cuda:N" in a build that has it
  DeviceOptions gpu;
  Precision precision = Precision::kAuto;
  WeightConversion weights = WeightConversion::kNone;            ///< for releases in bf16, f16 or f32
  Int8Activations int8_activations = Int8Activations::kPrecise;  ///< for INT8 Linears
  VisionTower vision = VisionTower::kAuto;
  int num_threads = 0;              ///< 0: as many as this process may use
  std::int64_t max_tokens = 65536;  ///< longer records are refused; the model's own limit counts if it is lower
  bool truncate_state = false;      ///< cut the end of a state that is too long, and report it, instead of refusing
  MediaLimits media_limits;         ///< images and videos beyond them are refused, before memory is taken for them
  PretokenizerChoice pretokenizer = PretokenizerChoice::kAuto;
  LoadProgress load_progress;  ///< called on the loading thread; what it throws ends the loading
};

/// The tokens and spans of one request, as an Engine with these options would run them. Reads tokenizer.json,
/// tokenizer_config.json, config.json and processor_config.json of the release folder, no weights.
/// @throws Error kCheckpoint naming the file; kRequest; kTooLong
EncodedRecord encode_request(const std::filesystem::path& folder, const Request& request,
                             const EngineOptions& options = {});

/// Where the time of one call went, milliseconds.
struct Timings {
  double encode_ms = 0;  ///< reading media included
  double vision_ms = 0;
  double backbone_ms = 0;
  double queue_ms = 0;  ///< until the host had queued the backbone's work: below backbone_ms, the device never waited
  double head_ms = 0;
};

/// A loaded release that answers requests.
class Engine {
 public:
  /// Opens a release folder: config.json, *.safetensors, joint_head.safetensors, tokenizer.json.
  /// @throws Error kCheckpoint naming the file and the tensor; kDevice: no such device, or the model does not fit in
  ///         its memory, which is found before anything is loaded; kArgument: `weights` and the release is
  ///         quantised already
  explicit Engine(const std::filesystem::path& folder, const EngineOptions& options = {});
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  /// Answers every question of every request, in one packed pass where they fit in one. Thread-safe; concurrent calls
  /// queue. Images and clips that come again, in one call or a later one, are neither decoded nor run through the
  /// vision tower again.
  /// @param requests  each at most max_tokens tokens once encoded
  /// @param timings   if given, receives where the time went
  /// @return one Answers per request, in order; questions and options in request order
  /// @throws Error kRequest (questions, media), kTooLong (tokens: more than max_tokens, or than the device has memory
  ///         for), kDevice (out of memory)
  std::vector<Answers> answer(std::span<const Request> requests, Timings* timings = nullptr) const;
  Answers answer(const Request& request, Timings* timings = nullptr) const;

  /// The tokens and spans that answer() would run.
  EncodedRecord encode(const Request& request) const;

  /// Most bytes of activations that a pass has held so far.
  std::size_t peak_activation_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace treble
