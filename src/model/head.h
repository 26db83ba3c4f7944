#pragma once

#include <vector>

#include "model/packed_batch.h"
#include "model/weights.h"
#include "ops/ops.h"
#include "tensor/workspace.h"

namespace treble {

/// The joint schema head: hidden states and spans -> one logit per option. Activations are fp32 from the first norm on.
/// All records of the batch go through each product together; attention keeps them apart.
/// @param hidden  [T, h] as run_backbone returns it
/// @return [O] logits in the batch's option order
std::vector<float> run_head(const Model& model, const PackedBatch& batch, const TensorView& hidden, Ops& ops,
                            Workspace& workspace);

/// What the head reads of a record that the backbone reads in pieces: less than a pass's rows, so that a record may be
/// longer than one.
struct HeadMemory {
  TensorView rows;             // [T, width] f32: memory_projection of every token
  std::int32_t first_spanned;  // the first token that a question's or an option's span holds
  TensorView spanned;          // [T - first_spanned, h] act: hidden states from there on
};

/// Memory for a record's, the only one of the batch; nothing is in it yet.
HeadMemory take_head_memory(const Model& model, const PackedBatch& batch, Ops& ops, Workspace& workspace);

/// Adds the tokens of a piece, which begins at token `begin`: hidden [P, h] as run_backbone returns it.
void add_to_head_memory(const Model& model, const TensorView& hidden, std::int64_t begin, const HeadMemory& memory,
                        Ops& ops, Workspace& workspace);

/// The head on what was added. Equal digits where a product's do not depend on how many rows it has.
/// @param rows_at_once  tokens of the memory that go through a product together: bounds what operations take inside
std::vector<float> run_head(const Model& model, const PackedBatch& batch, const HeadMemory& memory,
                            std::int64_t rows_at_once, Ops& ops, Workspace& workspace);

}  // namespace treble
