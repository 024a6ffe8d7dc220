// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_HOSTFUNCTIONS_H
#define MGPU_DEVICE_API_HOSTFUNCTIONS_H

// Functions that the process registers by the names of custom calls. The host
// target calls them as it runs kernels.

#include "support/HostCall.h"
#include "support/Result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mgpu::device {

/// These have the members of mgt_tensor and mgt_call, which pipeline/c/mgt.h
/// describes.
struct FunctionTensor {
  const char *type;
  size_t rank;
  const int64_t *shape;
  void *data;
  size_t bytes;
};
struct FunctionCall {
  size_t size;
  const char *name;
  const char *config;
  size_t configBytes;
  size_t numOperands, numResults;
  const FunctionTensor *operands, *results;
  char *message;
  size_t messageBytes;
};

/// mgt_function.
struct HostFunction {
  int (*call)(void *user, const FunctionCall *call) = nullptr;
  void *user = nullptr;
};

/// From here on calls of that name are this function, in programs that are
/// opened; without a function none is. From any thread.
void registerFunction(const std::string &name, HostFunction function);
/// The function registered by that name. Unsupported where there is none.
Result<HostFunction> registeredFunction(const std::string &name);
/// Registers a function of a shared library, which stays loaded. Errors: Usage
/// where there is none.
Result<void> registerFromLibrary(const std::string &name,
                                 const std::string &file,
                                 const std::string &symbol);

/// A call and where its tensors lie, ready to be made again and again.
class BoundCall {
public:
  /// `addresses` has those of the operands, then those of the results. Invalid
  /// where some are missing.
  static Result<BoundCall> bind(HostFunction function, HostCall call,
                                const std::vector<uint64_t> &addresses);
  /// Errors: Invalid, with its message, where the function fails.
  Result<void> run() const;
  /// The operands, then the results.
  const std::vector<FunctionTensor> &all() const { return tensors; }

private:
  std::shared_ptr<const HostCall> what;
  std::vector<FunctionTensor> tensors;
  HostFunction function;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_HOSTFUNCTIONS_H
