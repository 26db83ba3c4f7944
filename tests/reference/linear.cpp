// One Linear of a release on given inputs, for python/reference/check_quantize.py:
//   treble_linear RELEASE MODULE IN.safetensors OUT.safetensors MODE
// MODULE is a canonical name ("text.layers.0.mlp.up_proj"). IN holds "x" [T, in_features] bf16, OUT gets "y"
// [T, out_features] bf16. MODE is that of --int8-activations.

#include <fmt/format.h>
#include <treble/error.h>

#include <cstdio>
#include <exception>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/storage_format.h"
#include "engine/backend.h"
#include "quant/read_int8.h"
#include "quant/read_nf4.h"

namespace treble {
namespace {

Int8Activations parse_mode(std::string_view name) {
  if (name == "precise") return Int8Activations::kPrecise;
  if (name == "comfy-fused") return Int8Activations::kComfyFused;
  if (name == "comfy-fallback") return Int8Activations::kComfyFallback;
  throw Error(ErrorCode::kArgument, fmt::format("linear: unknown mode {}", name));
}

LinearWeight read_linear(const Checkpoint& checkpoint, std::string_view module, ModuleTensors& tensors) {
  return tensors.has("weight.absmax") ? read_nf4(tensors) : read_int8(tensors, checkpoint.quantization(module));
}

ModuleTensors tensors_of(const Checkpoint& checkpoint, std::string_view module) {
  ModuleTensors::Parts parts;
  for (const Checkpoint::Entry& entry : checkpoint.entries())
    if (const ModulePart split = split_module(entry.name); split.module == module)
      parts.emplace(split.part, entry.view);
  return ModuleTensors(fmt::format("linear: {}", module), std::move(parts));
}

void run(const char* release, const char* module, const char* in, const char* out, const char* mode) {
  const Checkpoint checkpoint(release);
  ModuleTensors tensors = tensors_of(checkpoint, module);
  const LinearWeight weight = read_linear(checkpoint, module, tensors);
  const SafetensorsFile inputs(in);
  const std::unique_ptr<Ops> ops = make_ops("cpu", Precision::kBf16, parse_mode(mode));

  Workspace workspace(ops->memory());
  const Workspace::Scope scope(workspace);
  const TensorView x = ops->upload(workspace, inputs.tensors().at(0).view);
  const TensorView y = workspace.take(DType::kBF16, {x.size(0), weight.out_features()});
  const Linear::Output output{&weight, y};
  ops->linear({.input = x, .outputs = {&output, 1}});

  SafetensorsWriter writer(out, {{.name = "y", .dtype = DType::kBF16, .shape = {y.size(0), y.size(1)}}}, {});
  writer.write("y", 0, {static_cast<const std::byte*>(y.data()), y.num_bytes()});
  writer.finish();
}

}  // namespace
}  // namespace treble

int main(int argc, char** argv) {
  try {
    if (argc != 6) throw treble::Error(treble::ErrorCode::kArgument, "usage: treble_linear RELEASE MODULE IN OUT MODE");
    treble::run(argv[1], argv[2], argv[3], argv[4], argv[5]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
