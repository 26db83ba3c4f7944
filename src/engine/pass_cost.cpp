#include "engine/pass_cost.h"

#include "engine/backend.h"
#include "engine/pack.h"
#include "engine/profiled_ops.h"
#include "model/backbone.h"
#include "model/head.h"
#include "model/shape_source.h"
#include "model/vision.h"
#include "tensor/workspace.h"

namespace treble {

OpCost cost_of_pass(const Model& model, std::span<const EncodedRecord> records) {
  ProfiledOps ops(make_planner());
  ShapeSource shapes(model.vision.has_value());
  const Model plan = build_model(model.config, shapes, ops);
  const PackedBatch batch = pack_batch(records, model.config.text.vocab_size);
  Workspace workspace(ops.memory());
  TensorView media_features;
  if (!batch.media.empty()) media_features = run_vision(plan, batch.media, ops, workspace);
  run_head(plan, batch, run_backbone(plan, batch, media_features, ops, workspace), ops, workspace);
  OpCost sum;
  for (const OpTime& op : ops.times()) {
    sum.bytes += op.cost.bytes;
    sum.flops += op.cost.flops;
  }
  return sum;
}

}  // namespace treble
