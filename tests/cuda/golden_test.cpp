// The whole spine on the CUDA backend against the values of the original stack (tests/data/README.md).

#include <doctest/doctest.h>
#include <treble/error.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <thread>

#include "cuda/make_cuda_ops.h"
#include "engine/load.h"
#include "golden/quantized.h"

namespace treble::testing {
namespace {

// fp32 inputs of products are three bf16 terms; their sums are in another order than the processor's.
constexpr double kLogitTolerance = 1e-4;

// How far the backend's bf16 logits may be from the original's fp32 ones, in units of the original's own bf16 run: root
// mean square over all requests, and of any one.
constexpr double kWholeShare = 1.5, kRequestShare = 2;
constexpr double kSmallestNoise = 0.01;  // of a request whose bf16 run happens to hit the fp32 one

bool has_device() {
  if (cuda::num_devices() > 0) return true;
  std::puts("SKIPPED: there is no GPU here, or no driver for it");
  return false;
}

/// Nothing where the libraries that read its media are not installed.
std::optional<EncodedRecord> encode_if_readable(const FixtureCase& fixture_case, const Tokenizer& tokenizer) {
  try {
    return encode(fixture_case, tokenizer);
  } catch (const Error& error) {
    std::printf("SKIPPED: %s: %s\n", fixture_case.name.c_str(), error.what());
    return std::nullopt;
  }
}

struct Deviation {
  double squares = 0;
  int count = 0;

  template <typename Got>
  void add(const std::vector<std::vector<Got>>& got, const std::vector<std::vector<double>>& expected) {
    for (std::size_t q = 0; q < got.size(); ++q) {
      for (std::size_t o = 0; o < got[q].size(); ++o, ++count) squares += std::pow(got[q][o] - expected[q][o], 2);
    }
  }
  double rms() const { return std::sqrt(squares / count); }
};

TEST_CASE("golden: fp32 logits of every request are the original stack's") {
  if (!has_device()) return;
  const Fixture fixture("micro");
  const Tokenizer tokenizer(fixture.release());
  Pipeline pipeline = open(fixture, Precision::kF32, 0, Int8Activations::kPrecise, "cuda");
  double largest = 0;
  for (const FixtureCase& fixture_case : fixture.cases()) {
    const std::optional<EncodedRecord> record = encode_if_readable(fixture_case, tokenizer);
    if (!record) continue;
    CAPTURE(fixture_case.name);
    const Logits logits = pipeline.run(std::span(&*record, 1));
    const double difference = largest_difference(logits[0], fixture.logits(fixture_case, "fp32"));
    CHECK(difference < kLogitTolerance);
    largest = std::max(largest, difference);
  }
  MESSAGE("fp32 activations: the largest difference of a logit is ", largest);
}

/// The original's own bf16 run is that of the bf16 release.
void check_bf16_logits(const char* name, Pipeline pipeline) {
  const Fixture fixture(name), plain("micro");
  const Tokenizer tokenizer(fixture.release());
  Deviation ours, original;
  for (const FixtureCase& fixture_case : fixture.cases()) {
    const std::optional<EncodedRecord> record = encode_if_readable(fixture_case, tokenizer);
    if (!record) continue;
    CAPTURE(fixture_case.name);
    const Logits logits = pipeline.run(std::span(&*record, 1));
    const auto expected = fixture.logits(fixture_case, "fp32");
    const auto noisy = plain.logits(fixture_case, "bf16"), noiseless = plain.logits(fixture_case, "fp32");
    Deviation of_request, of_original;
    of_request.add(logits[0], expected);
    of_original.add(noisy, noiseless);
    CHECK(of_request.rms() < kRequestShare * std::max(of_original.rms(), kSmallestNoise));
    ours.add(logits[0], expected);
    original.add(noisy, noiseless);
  }
  CHECK(ours.rms() < kWholeShare * original.rms());
  MESSAGE("bf16 activations: root mean square ", ours.rms(), " from fp32, the original's ", original.rms());
}

TEST_CASE("golden: bf16 logits deviate from fp32 no more than half as much again as the original's own") {
  if (!has_device()) return;
  check_bf16_logits("micro", open(Fixture("micro"), Precision::kBf16, 0, Int8Activations::kPrecise, "cuda"));
}

Pipeline open_nf4(const Fixture& fixture, Precision precision) {
  std::unique_ptr<Ops> ops = make_ops("cuda", precision);
  Model model = load_quantized(fixture, *ops, WeightConversion::kNf4);
  return Pipeline(std::move(ops), std::move(model), 0);
}

/// The largest error of a logit of an INT8 release. Each request's logits go to look(got, expected) too.
template <typename Look>
double largest_int8_error(Precision precision, Int8Activations int8_activations, std::string_view run,
                          const Look& look) {
  const Fixture fixture("micro-int8");
  const Tokenizer tokenizer(fixture.release());
  std::unique_ptr<Ops> ops = make_ops("cuda", precision, int8_activations);
  Model model = load_quantized(fixture, *ops, WeightConversion::kNone);
  Pipeline pipeline(std::move(ops), std::move(model), 0);
  double largest = 0;
  for (const FixtureCase& fixture_case : fixture.cases()) {
    const std::optional<EncodedRecord> record = encode_if_readable(fixture_case, tokenizer);
    if (!record) continue;
    CAPTURE(fixture_case.name);
    const Logits logits = pipeline.run(std::span(&*record, 1));
    const auto expected = fixture.logits(fixture_case, run);
    look(logits[0], expected);
    largest = std::max(largest, largest_difference(logits[0], expected));
  }
  MESSAGE("largest error of a logit: ", largest);
  return largest;
}

TEST_CASE("golden: an INT8 release gives the precise run's decisions, and its logits but for what flipped codes do") {
  if (!has_device()) return;
  const auto check_decisions = [](const auto& logits, const auto& expected) {
    for (std::size_t q = 0; q < expected.size(); ++q) CHECK(is_same_decision(logits[q], expected[q]));
  };
  CHECK(largest_int8_error(Precision::kF32, Int8Activations::kPrecise, "precise", check_decisions) <
        kInt8LogitTolerance);
}

TEST_CASE("golden: an INT8 release with bf16 activations in comfy-fallback mode gives Comfy's own answers") {
  if (!has_device()) return;
  const auto nothing = [](const auto&, const auto&) {};
  CHECK(largest_int8_error(Precision::kBf16, Int8Activations::kComfyFallback, "comfy_bf16", nothing) <
        kInt8Bf16LogitTolerance);
}

TEST_CASE("golden: logits of an NF4 release are the original stack's") {
  if (!has_device()) return;
  const Fixture fixture("micro-nf4");
  Pipeline pipeline = open_nf4(fixture, Precision::kF32);
  double largest = 0;
  for (const FixtureCase& fixture_case : fixture.cases()) {
    const std::optional<EncodedRecord> record = encode_if_readable(fixture_case, Tokenizer(fixture.release()));
    if (!record) continue;
    CAPTURE(fixture_case.name);
    const double difference =
        largest_difference(pipeline.run(std::span(&*record, 1))[0], fixture.logits(fixture_case, "fp32"));
    CHECK(difference < kLogitTolerance);
    largest = std::max(largest, difference);
  }
  MESSAGE("nf4, fp32 activations: the largest difference of a logit is ", largest);
}

TEST_CASE("golden: bf16 logits of an NF4 release deviate no more than those of a bf16 release may") {
  if (!has_device()) return;
  check_bf16_logits("micro-nf4", open_nf4(Fixture("micro-nf4"), Precision::kBf16));
}

TEST_CASE("engine: INT8 and NF4 releases, and bf16 ones that become them, run on a GPU as planned") {
  if (!has_device()) return;
  const Fixture plain("micro"), quantized("micro-int8"), nf4("micro-nf4");
  const EncodedRecord record = encode(plain.find("card_example"), Tokenizer(plain.release()));
  const auto load = [&](const Fixture& fixture, WeightConversion weights) {
    EngineOptions options{.device = "cuda", .precision = Precision::kBf16};
    options.weights = weights;
    options.gpu.pass_tokens = static_cast<std::int64_t>(record.input_ids.size());
    return load_release(make_ops("cuda", options.precision), fixture.release(), options);
  };
  Pipeline stored(load(quantized, WeightConversion::kNone), 0), made(load(plain, WeightConversion::kInt8Convrot), 0),
      stored_nf4(load(nf4, WeightConversion::kNone), 0), made_nf4(load(plain, WeightConversion::kNf4), 0);
  for (Pipeline* pipeline : {&stored, &made, &stored_nf4, &made_nf4}) {
    const std::size_t activations = pipeline->held_activation_bytes(), scratch = pipeline->held_memory().scratch;
    pipeline->run(std::span(&record, 1));
    CHECK(pipeline->held_activation_bytes() == activations);
    CHECK(pipeline->held_memory().scratch == scratch);
  }
}

TEST_CASE("engine: a record gives the same logits a hundred times, and in a packed batch nearly the same") {
  if (!has_device()) return;
  const Fixture fixture("micro");
  const Tokenizer tokenizer(fixture.release());
  Pipeline pipeline = open(fixture, Precision::kBf16, 0, Int8Activations::kPrecise, "cuda");
  std::vector<EncodedRecord> records;
  for (const char* name : {"plain_string", "three_types", "card_example", "option_order"})
    records.push_back(encode(fixture.find(name), tokenizer));
  const Logits first = pipeline.run(std::span(&records[2], 1));
  for (int i = 0; i < 100; ++i)
    REQUIRE(largest_difference(pipeline.run(std::span(&records[2], 1))[0], first[0]) == 0.0);
  const double packed = largest_difference(pipeline.run(records)[2], first[0]);
  CHECK(packed < 0.05);
  MESSAGE("a packed batch moves a logit by ", packed);
}

TEST_CASE("engine: no pass takes memory, a call goes through in several passes, and a longer record in pieces") {
  if (!has_device()) return;
  const Fixture fixture("micro");
  const Tokenizer tokenizer(fixture.release());
  std::vector<EncodedRecord> records;
  for (const char* name : {"plain_string", "three_types", "card_example", "option_order"})
    records.push_back(encode(fixture.find(name), tokenizer));
  std::size_t longest = 0;
  for (const EncodedRecord& record : records) longest = std::max(longest, record.input_ids.size());
  EngineOptions options{.device = "cuda", .precision = Precision::kBf16};
  options.gpu.pass_tokens = static_cast<std::int64_t>(longest);
  const auto load = [&] { return load_release(make_ops("cuda", options.precision), fixture.release(), options); };

  Pipeline pipeline(load(), 0), whole = open(fixture, Precision::kBf16, 0, Int8Activations::kPrecise, "cuda");
  const std::size_t activations = pipeline.held_activation_bytes(), scratch = pipeline.held_memory().scratch;
  CHECK(activations > 0);
  Logits logits;
  std::thread([&] { logits = pipeline.run(records); }).join();  // not the thread that loaded the model
  CHECK(pipeline.held_activation_bytes() == activations);
  CHECK(pipeline.peak_activation_bytes() <= activations);
  CHECK(pipeline.held_memory().scratch == scratch);
  REQUIRE(logits.size() == records.size());
  for (std::size_t i = 0; i < records.size(); ++i)
    CHECK(largest_difference(logits[i], whole.run(std::span(&records[i], 1))[0]) < 0.05);

  CHECK(pipeline.held_carried_bytes() == 0);

  options.gpu.pass_tokens = 64;
  options.vision = VisionTower::kResident;  // else its activations are taken with it, at the first picture
  Pipeline small(load(), 0);
  records.push_back(encode(fixture.find("image_and_videos"), tokenizer));
  const std::size_t small_activations = small.held_activation_bytes(), small_scratch = small.held_memory().scratch;
  const Logits in_pieces = small.run(records);
  for (std::size_t i = 0; i < records.size(); ++i)
    CHECK(largest_difference(in_pieces[i], whole.run(std::span(&records[i], 1))[0]) < 0.05);
  CHECK(small.held_activation_bytes() == small_activations);
  CHECK(small.held_carried_bytes() > 0);
  CHECK(small.peak_carried_bytes() <= small.held_carried_bytes());
  MESSAGE("scratch: ", small_scratch, " bytes planned for passes, ", small.held_memory().scratch, " after pieces");
  options.gpu.pass_tokens = 63;
  CHECK_THROWS_WITH_AS(load(), doctest::Contains("--pass-tokens"), Error);
}

TEST_CASE("engine: the vision tower takes memory when the first picture comes, and the answer is as if it had before") {
  if (!has_device()) return;
  const Fixture fixture("micro");
  const Tokenizer tokenizer(fixture.release());
  const EncodedRecord text = encode(fixture.find("plain_string"), tokenizer),
                      pictures = encode(fixture.find("image_and_videos"), tokenizer);
  EngineOptions options{.device = "cuda", .precision = Precision::kBf16};
  const auto load = [&](VisionTower vision) {
    options.vision = vision;
    return Pipeline(load_release(make_ops("cuda", options.precision), fixture.release(), options), 0);
  };
  Pipeline resident = load(VisionTower::kResident), later = load(VisionTower::kAuto), off = load(VisionTower::kOff);
  CHECK(later.reads_media());
  later.run(std::span(&text, 1));
  CHECK_FALSE(later.model().vision);
  CHECK(later.held_activation_bytes() <= resident.held_activation_bytes());
  const Logits logits = later.run(std::span(&pictures, 1));
  CHECK(later.model().vision);
  CHECK(later.held_activation_bytes() == resident.held_activation_bytes());
  CHECK(largest_difference(logits[0], resident.run(std::span(&pictures, 1))[0]) == 0);
  CHECK_FALSE(off.reads_media());
  CHECK_THROWS_WITH_AS(off.run(std::span(&pictures, 1)), doctest::Contains("--vision off"), Error);
}

TEST_CASE("engine: a limit on the device's memory is kept, and one that cannot work is refused with the figures") {
  if (!has_device()) return;
  const Fixture fixture("micro");
  const Tokenizer tokenizer(fixture.release());
  const auto load = [&](std::uint64_t limit) {
    EngineOptions options{.device = "cuda", .precision = Precision::kBf16};
    options.gpu.memory_limit = limit;
    return load_release(make_ops("cuda", options.precision, Int8Activations::kPrecise, options.gpu), fixture.release(),
                        options);
  };
  constexpr std::uint64_t kMiB = 1 << 20;
  Pipeline pipeline(load(1200 * kMiB), 0);
  CHECK(pipeline.limits().longest_tokens > 0);
  const EncodedRecord record = encode(fixture.find("plain_string"), tokenizer);
  pipeline.run(std::span(&record, 1));
  const HeldMemory held = pipeline.held_memory();
  CHECK(held.weights + held.scratch + held.other + pipeline.held_activation_bytes() + pipeline.held_carried_bytes() <
        1200 * kMiB);
  CHECK_THROWS_WITH_AS(load(700 * kMiB), doctest::Contains("--memory-limit"), Error);
}

}  // namespace
}  // namespace treble::testing
