// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TORCH_ATENOPS_H
#define MGPU_PIPELINE_TORCH_ATENOPS_H

// The operations of ATen that are read, each with its signature and what
// writes it as StableHLO.

#include "pipeline/torch/StablehloText.h"

namespace mgpu::pipeline::torch {

class Call;
using Results = std::vector<Tensor>;

struct Operation {
  /// "add.Tensor(self, other, alpha=1)", as native_functions.yaml has it but
  /// for types. An argument without a default must be there.
  const char *signature;
  Results (*make)(Builder &b, const Call &call);
  const char *detail = nullptr; ///< for `make`, such as a name in StableHLO
};

// One table for each file.
std::span<const Operation> pointwiseOperations();
std::span<const Operation> activationOperations();
std::span<const Operation> shapeOperations();
std::span<const Operation> creationOperations();
std::span<const Operation> reductionOperations();
std::span<const Operation> productOperations();
std::span<const Operation> convolutionOperations();
std::span<const Operation> indexOperations();
std::span<const Operation> poolOperations();
std::span<const Operation> normOperations();
std::span<const Operation> lossOperations();

/// The operation of a target, as "add.Tensor" or "relu"; null if it is not
/// read.
const Operation *findOperation(std::string_view name);
/// The signatures of all, sorted.
std::vector<std::string_view> operationSignatures();

/// A node with its operation's defaults. Asking for an argument of another kind
/// throws Refused, with the node's name.
class Call {
public:
  using Environment = std::map<std::string, Tensor, std::less<>>;
  /// Throws Refused where an argument is missing or unknown.
  Call(const Node &node, const Operation &operation,
       const Environment &environment);

  const Node &node;
  const char *detail;

  bool isNone(const char *name) const;
  Tensor tensor(const char *name) const;
  std::optional<Tensor> maybeTensor(const char *name) const;
  std::vector<Tensor> tensors(const char *name) const;
  std::vector<std::optional<Tensor>> maybeTensors(const char *name) const;
  bool isTensor(const char *name) const;
  Scalar scalar(const char *name) const;
  double real(const char *name) const { return scalar(name).real; }
  int64_t integer(const char *name) const;
  bool flag(const char *name) const { return scalar(name).real != 0; }
  Sizes integers(const char *name) const;
  std::vector<double> reals(const char *name) const;
  /// `count` of them: one number stands for all.
  Sizes integers(const char *name, size_t count) const;
  /// The dimensions of `x`; all where there is none or it is None.
  Sizes dims(const char *name, const Tensor &x) const;
  int64_t dim(const char *name, const Tensor &x) const {
    return dimOf(integer(name), x.rank());
  }
  std::string text(const char *name) const;
  /// The type `name`, or `otherwise` where it is None.
  ElementType element(const char *name, ElementType otherwise) const;
  bool has(const char *name) const { return values.contains(name); }

  [[noreturn]] void refuse(const std::string &why,
                           ErrorKind kind = ErrorKind::Unsupported) const;

private:
  const Value &value(const char *name) const;
  Tensor find(const std::string &name) const;
  template <typename T>
  const T &as(const char *name, const char *what) const;

  const Environment &environment;
  std::map<std::string, Value, std::less<>> values;
};

} // namespace mgpu::pipeline::torch

#endif // MGPU_PIPELINE_TORCH_ATENOPS_H
