#include "engine/bench.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <treble/error.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <optional>
#include <random>

#include "engine/backend.h"
#include "engine/load.h"
#include "engine/pack.h"
#include "engine/pass_cost.h"
#include "engine/pipeline.h"
#include "media/media_config.h"
#include "media/media_item.h"
#include "model/synthetic.h"
#include "record/encode.h"
#include "record/media_reader.h"
#include "text/tokenizer.h"

namespace treble {
namespace {

using Clock = std::chrono::steady_clock;

/// One timed pass.
struct Sample {
  double total_ms = 0;
  Timings parts;
};

/// Value below which the given share of the samples lies, the nearest one.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto index = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  return values[index];
}

template <typename Field>
BenchFigure figure(const std::vector<Sample>& samples, const Field& field) {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(field(sample));
  return {quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9)};
}

BenchRow summarise(std::string name, const std::vector<Sample>& samples, std::int64_t total_tokens,
                   std::int64_t decisions) {
  BenchRow row;
  row.name = std::move(name);
  row.total_tokens = total_tokens;
  row.decisions = decisions;
  row.total = figure(samples, [](const Sample& s) { return s.total_ms; });
  row.encode = figure(samples, [](const Sample& s) { return s.parts.encode_ms; });
  row.vision = figure(samples, [](const Sample& s) { return s.parts.vision_ms; });
  row.backbone = figure(samples, [](const Sample& s) { return s.parts.backbone_ms; });
  row.head = figure(samples, [](const Sample& s) { return s.parts.head_ms; });
  row.queue = figure(samples, [](const Sample& s) { return s.parts.queue_ms; });
  row.tokens_per_s = static_cast<double>(total_tokens) / row.total.median_ms * 1e3;
  row.decisions_per_s = static_cast<double>(decisions) / row.total.median_ms * 1e3;
  return row;
}

/// A record of exactly `tokens` random ids whose last third holds the spans of the schema, as in a real prompt.
EncodedRecord made_up_record(std::int64_t tokens, const BenchOptions& options, std::int64_t vocab_size, unsigned seed) {
  EncodedRecord record;
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int32_t> any_id(0, static_cast<std::int32_t>(vocab_size - 1));
  for (std::int64_t t = 0; t < tokens; ++t) record.input_ids.push_back(any_id(random));

  const std::int64_t num_spans = static_cast<std::int64_t>(options.questions) * (options.options + 1);
  const std::int64_t length = std::clamp<std::int64_t>(tokens / (3 * num_spans), 1, 16);
  std::int64_t next = 0;
  const auto take_span = [&] {
    const std::int64_t begin =
        std::max<std::int64_t>(0, tokens - 1 - length - next++ * length % std::max<std::int64_t>(1, tokens - length));
    return Span{static_cast<std::int32_t>(begin), static_cast<std::int32_t>(std::min(tokens, begin + length))};
  };
  for (int q = 0; q < options.questions; ++q) {
    EncodedQuestion question{.id = fmt::format("q{}", q),
                             .type = QuestionType::kChoice,
                             .question_span = take_span(),
                             .option_spans = {},
                             .option_ids = {},
                             .request_order = {}};
    for (int o = 0; o < options.options; ++o) question.option_spans.push_back(take_span());
    record.questions.push_back(std::move(question));
  }
  return record;
}

/// A picture of noise, as MediaReader gives one of that size.
std::shared_ptr<const MediaItem> made_up_image(const PictureSize& size, const MediaProcessorConfig& config) {
  PictureSize fitted;
  try {
    fitted = fitted_image_size(size, config);
  } catch (const Error& error) {
    throw Error(ErrorCode::kArgument, fmt::format("bench: --image: {}", error.what()));
  }
  auto item = std::make_shared<MediaItem>();
  item->grid_h = fitted.height / kPatchSize;
  item->grid_w = fitted.width / kPatchSize;
  item->mean = item->deviation = {127.5f, 127.5f, 127.5f};
  item->levels.resize(static_cast<std::size_t>(3 * fitted.height * fitted.width));
  std::mt19937 random(1);
  for (std::uint8_t& level : item->levels) level = static_cast<std::uint8_t>(random());
  return item;
}

std::vector<OpTime> per_pass(std::vector<OpTime> times, int num_passes) {
  for (OpTime& op : times) {
    op.calls /= num_passes;
    op.ms /= num_passes;
    op.cost.bytes /= num_passes;
    op.cost.flops /= num_passes;
  }
  return times;
}

/// What runs of all lengths and batches share.
struct Bench {
  Pipeline& pipeline;
  Ops& ops;              // the pipeline's
  ProfiledOps* profile;  // the same, or nullptr: operations are not measured
  DeviceMeter* meter;    // or nullptr
  const BenchOptions& options;
  std::shared_ptr<const MediaItem> image;  // of every record, before its other tokens, or nullptr

  std::int64_t image_tokens() const { return image ? image->num_tokens() : 0; }
};

std::vector<EncodedRecord> made_up_records(const Bench& bench, std::int64_t tokens, int count) {
  std::vector<EncodedRecord> records;
  for (int i = 0; i < count; ++i) {
    EncodedRecord& record = records.emplace_back(made_up_record(bench.image_tokens() + tokens, bench.options,
                                                                bench.pipeline.model().config.text.vocab_size,
                                                                static_cast<unsigned>(i + 1)));
    if (!bench.image) continue;
    record.media = {bench.image};
    record.media_spans = {{0, static_cast<std::int32_t>(bench.image_tokens())}};
  }
  return records;
}

/// 10^12 operations a second of gate and up projections together: what the device's products reach without the rest.
/// 0 if there is no memory for their outputs.
double product_tflops(const Bench& bench, std::int64_t num_tokens) {
  constexpr int kWarmUps = 3, kRepeats = 20;
  const Model& model = bench.pipeline.model();
  const MlpWeights& mlp = model.backbone.layers.front().mlp;
  Ops& ops = bench.ops;
  const std::shared_ptr<void> binding = ops.bind_thread();
  try {
    Workspace workspace(ops.memory());
    std::vector<std::int32_t> ids(static_cast<std::size_t>(num_tokens));
    for (std::size_t t = 0; t < ids.size(); ++t) ids[t] = static_cast<std::int32_t>(t % 1000);
    const std::int64_t width = mlp.gate_proj.out_features();
    const LinearInput input = ops.linear_input(workspace, num_tokens, {&mlp.gate_proj, &mlp.up_proj});
    const TensorView x = workspace.take(ops.activation_dtype(), {num_tokens, model.config.text.hidden_size}),
                     both = workspace.take(ops.activation_dtype(), {num_tokens, 2 * width});
    ops.embedding({.ids = ops.upload(workspace, TensorView(ids.data(), DType::kI32, {num_tokens})),
                   .table = model.backbone.embed_tokens,
                   .out = x});
    ops.rms_norm({.x = x, .weight = model.backbone.norm, .eps = model.config.text.rms_norm_eps, .out = input});
    const std::array outputs = {Linear::Output{&mlp.gate_proj, both.slice(1, 0, width)},
                                Linear::Output{&mlp.up_proj, both.slice(1, width, 2 * width)}};
    const Linear products{.input = input, .outputs = outputs};
    Clock::time_point start;
    for (int i = 0; i < kWarmUps + kRepeats; ++i) {
      if (i == kWarmUps) {
        ops.synchronize();
        start = Clock::now();
      }
      ops.linear(products);
    }
    ops.synchronize();
    return kRepeats * cost_of(products).flops / std::chrono::duration<double>(Clock::now() - start).count() / 1e12;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDevice) throw;
    return 0;
  }
}

BenchRow bench_length(const Bench& bench, std::int64_t tokens, int batch) {
  const BenchOptions& options = bench.options;
  const std::vector<EncodedRecord> records = made_up_records(bench, tokens, batch);
  std::vector<Sample> samples;
  std::vector<std::vector<std::vector<float>>> logits;
  for (int pass = 0; pass <= options.repeats; ++pass) {
    Sample sample;
    if (pass == 0 && bench.meter) bench.meter->watch();  // the first pass takes what memory it needs
    const Clock::time_point start = Clock::now();
    logits = bench.pipeline.run(records, &sample.parts);
    sample.total_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (pass > 0) {
      samples.push_back(sample);
      continue;
    }
    if (bench.meter) bench.meter->pause();
    if (bench.profile) bench.profile->reset();
  }
  const std::string picture = bench.image ? fmt::format(" + {}x{}", options.image->width, options.image->height) : "";
  BenchRow row =
      summarise(fmt::format("{} tokens{} x {}", tokens, picture, batch), samples,
                (bench.image_tokens() + tokens) * batch, static_cast<std::int64_t>(options.questions) * batch);
  row.tokens = tokens;
  row.batch = batch;
  row.tflops = cost_of_pass(bench.pipeline.model(), records).flops / row.total.median_ms / 1e9;
  if (bench.profile) row.ops = per_pass(bench.profile->times(), options.repeats);
  if (batch > 1) {
    row.agreement.emplace();
    for (std::size_t i = 0; i < records.size(); ++i)
      add_record(*row.agreement, bench.pipeline.run(std::span(&records[i], 1)).front(), logits[i]);
  }
  return row;
}

/// Times real requests one at a time, from parsed JSON to decoded answers.
BenchRow bench_records(Pipeline& pipeline, const Tokenizer& tokenizer, MediaReader& media,
                       const EncodeOptions& encode_options, const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file)
    throw Error(ErrorCode::kArgument, fmt::format("bench: {} cannot be read; give a .jsonl file", path.string()));
  std::vector<Sample> samples;
  std::int64_t tokens = 0, decisions = 0;
  std::string line;
  for (bool first = true; std::getline(file, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Request request = parse_request(line);
    request.media_folder = path.parent_path();
    for (const bool timed : {false, true}) {
      if (!timed && !first) continue;  // only the first request runs twice, once to warm up
      Sample sample;
      const Clock::time_point start = Clock::now();
      const EncodedRecord record =
          encode_record(request, tokenizer, encode_options, media.read(request, encode_options.max_tokens));
      sample.parts.encode_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      const auto logits = pipeline.run(std::span(&record, 1), &sample.parts);
      decode_answers(request, record, logits.front());
      sample.total_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      if (!timed) continue;
      samples.push_back(sample);
      tokens += static_cast<std::int64_t>(record.input_ids.size());
      decisions += static_cast<std::int64_t>(record.questions.size());
    }
    first = false;
  }
  if (samples.empty()) throw Error(ErrorCode::kArgument, fmt::format("bench: {} holds no request", path.string()));
  const auto count = static_cast<std::int64_t>(samples.size());
  BenchRow row = summarise(fmt::format("{} records, one at a time", count), samples, tokens / count, decisions / count);
  row.tokens = tokens / count;
  return row;
}

std::size_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;  // Linux counts KiB
}

void check(const BenchOptions& options) {
  constexpr std::int64_t kMostSide = 65536;
  const auto fail = [](const std::string& what) { throw Error(ErrorCode::kArgument, "bench: " + what); };
  if (options.model.empty() == options.synthetic.empty()) fail("give either --model or --synthetic");
  if (!options.records.empty() && options.model.empty())
    fail("--records needs --model: a synthetic model has no tokenizer");
  if (options.questions < 1 || options.questions > 4096)
    fail(fmt::format("{} questions; use 1 to 4096", options.questions));
  if (options.options < 1 || options.options > 255) fail(fmt::format("{} options; use 1 to 255", options.options));
  for (const int batch : options.batch)
    if (batch < 1 || batch > 4096) fail(fmt::format("a batch of {} records; use 1 to 4096", batch));
  if (options.profile && !options.records.empty()) fail("--profile measures made-up records; leave --records out");
  if (options.image && options.engine.vision == VisionTower::kOff)
    fail("--image needs the vision tower; leave --vision off out");
  if (options.image && !options.records.empty()) fail("--image adds a picture to made-up records; leave --records out");
  if (options.image && (options.image->width < 1 || options.image->width > kMostSide || options.image->height < 1 ||
                        options.image->height > kMostSide))
    fail(fmt::format("an image of {} x {} pixels; sides may have 1 to {}", options.image->width, options.image->height,
                     kMostSide));
  if (options.repeats < 1) fail(fmt::format("{} repeats; use at least 1", options.repeats));
  for (const std::int64_t tokens : options.tokens)
    if (tokens < 2 || tokens > 1 << 20) fail(fmt::format("records of {} tokens; use 2 to {}", tokens, 1 << 20));
}

/// Of a synthetic model, the tower is made only for a picture, so that the memory of a text model is reported as it is.
LoadedModel load(std::unique_ptr<Ops> ops, const BenchOptions& options) {
  if (options.synthetic.empty()) return load_release(std::move(ops), options.model, options.engine);
  ModelConfig config = synthetic_config(options.synthetic);
  if (!options.image) config.vision.reset();
  return load_synthetic(std::move(ops), config, options.engine);
}

Json to_json(const BenchFigure& figure) {
  return Json::Object{
      {"median", Json::real(figure.median_ms)}, {"p10", Json::real(figure.p10_ms)}, {"p90", Json::real(figure.p90_ms)}};
}

/// JSON has no infinity, and nothing that is not a number.
Json real_or_null(double value) {
  return std::isfinite(value) ? Json::real(value) : Json();
}

Json bytes_json(std::size_t bytes) {
  return Json::integer(static_cast<long long>(bytes));
}

}  // namespace

BenchReport run_bench(const BenchOptions& options, const std::function<void(const std::string&)>& progress) {
  check(options);
  const auto report_step = [&](const std::string& step) {
    if (progress) progress(step);
  };
  const bool is_synthetic = !options.synthetic.empty();
  BenchReport report;
  report.model = is_synthetic ? options.synthetic + " synthetic" : options.model.lexically_normal().string();

  if (options.engine.weights != WeightConversion::kNone)
    report.model += fmt::format(", weights as {}", to_string(options.engine.weights));
  report_step(is_synthetic ? "making weights" : "loading weights");
  const int num_threads = resolve_threads(options.engine.num_threads);
  const std::unique_ptr<DeviceMeter> meter = make_device_meter(options.engine.device);
  std::unique_ptr<Ops> ops =
      make_ops(options.engine.device, options.engine.precision, options.engine.int8_activations, options.engine.gpu);
  report.device =
      fmt::format("{}, {} threads, {} activations", ops->name(), num_threads, to_string(ops->activation_dtype()));
  ProfiledOps* profile = nullptr;
  if (options.profile) {
    auto profiled = std::make_unique<ProfiledOps>(std::move(ops));
    profile = profiled.get();
    ops = std::move(profiled);
  }
  constexpr std::size_t kNoCache = 0;  // a picture that comes again is timed again
  Ops& used_ops = *ops;
  if (meter) meter->watch();
  Pipeline pipeline(load(std::move(ops), options), num_threads, kNoCache);
  if (meter) meter->pause();
  report.weight_bytes = pipeline.model().weight_bytes;
  if (pipeline.limits().activation_bytes > 0) {
    report.pass_tokens = pipeline.limits().max_tokens;
    report.longest_tokens = pipeline.limits().longest_tokens;
  }

  if (!options.records.empty()) {
    report_step(fmt::format("answering {}", options.records.string()));
    const EncodeOptions encode_options{
        .max_tokens = std::min(options.engine.max_tokens, read_max_positions(options.model)),
        .truncate_state = options.engine.truncate_state};
    MediaReader media(read_media_config(options.model), options.engine.media_limits, kNoCache);
    report.rows.push_back(bench_records(pipeline, Tokenizer(options.model, options.engine.pretokenizer), media,
                                        encode_options, options.records));
  } else {
    std::shared_ptr<const MediaItem> image;
    if (options.image) {
      if (!pipeline.reads_media())
        throw Error(ErrorCode::kArgument, fmt::format("bench: --image needs a release with a vision tower, {} has none",
                                                      options.model.string()));
      const MediaConfig media = is_synthetic ? MediaConfig() : read_media_config(options.model);
      require_image_block(media);
      image = made_up_image(*options.image, media.image);
    }
    const Bench bench{pipeline, used_ops, profile, meter.get(), options, image};
    for (const std::int64_t tokens : options.tokens) {
      for (const int batch : options.batch) {  // before any is timed, so that no figure is lost
        const std::vector<EncodedRecord> records = made_up_records(bench, tokens, batch);
        require_one_pass(records, pipeline.limits().max_tokens, fmt::format("bench of {} tokens x {}", tokens, batch));
        pipeline.require_room(records.front());
      }
    }
    for (const std::int64_t tokens : options.tokens) {
      for (const int batch : options.batch) {
        report_step(fmt::format("{} tokens x {}", tokens, batch));
        report.rows.push_back(bench_length(bench, tokens, batch));
      }
    }
    // Of a GPU, what its products reach alone; last, because their memory is not the model's.
    if (meter) {
      for (BenchRow& row : report.rows)
        row.product_tflops = product_tflops(bench, std::min(row.total_tokens, report.pass_tokens));
    }
  }
  report.activation_bytes = pipeline.peak_activation_bytes();
  report.held_activation_bytes = pipeline.held_activation_bytes();
  report.held_carried_bytes = pipeline.held_carried_bytes();
  report.held = pipeline.held_memory();
  if (meter) {
    report.peak_device_bytes = meter->peak_bytes();
    report.peak_device_source = meter->source();
  }
  report.peak_resident_bytes = peak_resident_bytes();
  return report;
}

Json to_json(const BenchReport& report) {
  Json::Array rows;
  for (const BenchRow& row : report.rows) {
    rows.push_back(Json::Object{{"name", row.name},
                                {"tokens", Json::integer(row.tokens)},
                                {"batch", Json::integer(row.batch)},
                                {"total_tokens", Json::integer(row.total_tokens)},
                                {"decisions", Json::integer(row.decisions)},
                                {"total_ms", to_json(row.total)},
                                {"encode_ms", to_json(row.encode)},
                                {"vision_ms", to_json(row.vision)},
                                {"backbone_ms", to_json(row.backbone)},
                                {"head_ms", to_json(row.head)},
                                {"queue_ms", to_json(row.queue)},
                                {"tokens_per_s", Json::real(row.tokens_per_s)},
                                {"decisions_per_s", Json::real(row.decisions_per_s)}});
    Json::Object& object = rows.back().as_object();
    if (row.tflops > 0) object.push_back({"tflops", Json::real(row.tflops)});
    if (row.product_tflops > 0) object.push_back({"product_tflops", Json::real(row.product_tflops)});
    if (row.agreement)
      object.push_back({"against_batch_1", Json::Object{{"decisions", Json::integer(row.agreement->decisions)},
                                                        {"differing", Json::integer(row.agreement->differing)},
                                                        {"max_dp", real_or_null(row.agreement->max_difference)}}});
    if (row.ops.empty()) continue;
    Json::Array ops;
    for (const OpTime& op : row.ops)
      ops.push_back(Json::Object{{"name", op.name},
                                 {"calls", Json::integer(op.calls)},
                                 {"ms", Json::real(op.ms)},
                                 {"gbytes_per_s", real_or_null(op.cost.bytes / op.ms / 1e6)},
                                 {"tflops", real_or_null(op.cost.flops / op.ms / 1e9)}});
    object.push_back({"ops", std::move(ops)});
  }
  Json::Object object{{"model", report.model},
                      {"device", report.device},
                      {"weight_bytes", bytes_json(report.weight_bytes)},
                      {"activation_bytes", bytes_json(report.activation_bytes)},
                      {"peak_resident_bytes", bytes_json(report.peak_resident_bytes)}};
  if (report.pass_tokens > 0) {
    object.push_back({"pass_tokens", Json::integer(report.pass_tokens)});
    object.push_back({"longest_tokens", Json::integer(report.longest_tokens)});
    object.push_back({"allocated_bytes", Json::Object{{"weights", bytes_json(report.held.weights)},
                                                      {"host_tables", bytes_json(report.held.host_tables)},
                                                      {"activations", bytes_json(report.held_activation_bytes)},
                                                      {"carried", bytes_json(report.held_carried_bytes)},
                                                      {"scratch", bytes_json(report.held.scratch)},
                                                      {"other", bytes_json(report.held.other)}}});
    object.push_back({"peak_device_bytes", bytes_json(report.peak_device_bytes)});
    object.push_back({"peak_device_source", report.peak_device_source});
  }
  object.push_back({"rows", std::move(rows)});
  return object;
}

}  // namespace treble
