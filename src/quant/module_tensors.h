#pragma once

#include <treble/json.h>

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor_view.h"

namespace treble {

/// The tensors of one quantised Linear by what follows the module's name ("weight", "weight.absmax", "bias"), and
/// memory for those that cannot be used where they lie. A reader takes them one by one; what is left is an error.
class ModuleTensors {
 public:
  using Parts = std::map<std::string, TensorView, std::less<>>;

  /// @param where  begins every message: "checkpoint: model.safetensors: \"text.layers.0.mlp.up_proj\""
  ModuleTensors(std::string where, Parts parts) : where_(std::move(where)), parts_(std::move(parts)) {}

  bool has(std::string_view name) const { return parts_.contains(name); }
  /// The tensor of that name, which then counts as read; empty if there is none.
  TensorView take_if(std::string_view name);
  /// @throws Error kCheckpoint if there is none
  TensorView take(std::string_view name);
  /// The first of these that is there. @throws Error kCheckpoint if there are two
  TensorView take_one_of(std::initializer_list<std::string_view> names);

  /// A tensor of bytes that holds a JSON object, perhaps with zeros after it. @throws Error kCheckpoint if it does not
  Json json(std::string_view name, const TensorView& bytes) const;
  /// A floating tensor as fp32 [count], in place where it is that already and aligned.
  /// @throws Error kCheckpoint unless it has `count` elements, all finite
  TensorView floats(std::string_view name, const TensorView& tensor, std::int64_t count);
  /// A bias rounded to bf16 [count], in place where it is that already; empty stays empty. @throws as floats()
  TensorView bias(std::string_view name, const TensorView& tensor, std::int64_t count);
  /// Memory for a tensor of that shape, kept with the module's storage.
  TensorView allocate(DType dtype, std::initializer_list<std::int64_t> shape);

  /// @throws Error kCheckpoint naming a tensor that nothing has taken: a bias or a scale left out is silent damage
  void check_all_taken() const;
  [[noreturn]] void fail(std::string_view what) const;

  /// Memory that the views given out point to, beside the file's own.
  std::vector<std::shared_ptr<const void>>& storage() { return storage_; }

 private:
  std::string where_;
  Parts parts_;
  std::vector<std::shared_ptr<const void>> storage_;
};

}  // namespace treble
