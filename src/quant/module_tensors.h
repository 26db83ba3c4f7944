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

/// How much of a module is read.
enum class ReadDepth {
  kValues,  ///< all of it
  kLayout,  ///< names, types, shapes and descriptions, as a file's header tells them: nothing large is touched, and
            ///< what would be made of values are views without memory, or empty
};

/// The tensors of one quantised Linear by what follows the module's name ("weight", "weight.absmax", "bias"), and
/// memory for those that cannot be used where they lie. A reader takes them one by one; what is left is an error.
class ModuleTensors {
 public:
  using Parts = std::map<std::string, TensorView, std::less<>>;

  /// @param where  begins every message: "checkpoint: model.safetensors: \"text.layers.0.mlp.up_proj\""
  ModuleTensors(std::string where, Parts parts, ReadDepth depth = ReadDepth::kValues)
      : where_(std::move(where)), parts_(std::move(parts)), depth_(depth) {}

  /// False at ReadDepth::kLayout: a reader then checks what can be checked without them.
  bool reads_values() const { return depth_ == ReadDepth::kValues; }

  bool has(std::string_view name) const { return parts_.contains(name); }
  /// The tensor of that name, which then counts as read; empty if there is none.
  TensorView take_if(std::string_view name);
  /// @throws Error kCheckpoint if there is none
  TensorView take(std::string_view name);
  /// The first of these that is there. @throws Error kCheckpoint if there are two
  TensorView take_one_of(std::initializer_list<std::string_view> names);

  /// A tensor of bytes that holds a JSON object, perhaps with zeros after it. @throws Error kCheckpoint if it does not
  Json json(std::string_view name, const TensorView& bytes) const;
  /// A floating tensor as fp32 [count], in place where it is that already and aligned. Empty if values are not read.
  /// @throws Error kCheckpoint unless it has `count` elements, all finite
  TensorView floats(std::string_view name, const TensorView& tensor, std::int64_t count);
  /// A bias rounded to bf16 [count], in place where it is that already; empty stays empty. @throws as floats()
  TensorView bias(std::string_view name, const TensorView& tensor, std::int64_t count);
  /// As floats(), for factors. @throws Error kCheckpoint naming one that is 0 or less
  TensorView positive_floats(std::string_view name, const TensorView& tensor, std::int64_t count);
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
  ReadDepth depth_;
  std::vector<std::shared_ptr<const void>> storage_;
};

}  // namespace treble
