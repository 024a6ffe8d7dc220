// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_HOSTCALL_H
#define MGPU_SUPPORT_HOSTCALL_H

// A call of a function that the process registers (device/api/HostFunctions.h),
// as a kernel of the program describes it.

#include "support/Result.h"
#include "support/Types.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mgpu {

class JsonFields;

struct HostCall {
  /// A tensor without gaps, row-major.
  struct Tensor {
    ElementType type = ElementType::F32;
    std::vector<int64_t> shape;
    uint64_t bytes() const;
    bool operator==(const Tensor &) const = default;
  };

  std::string name;   ///< by which the function is registered
  std::string config; ///< the call's own constants: any bytes
  std::vector<Tensor> operands, results;
  bool operator==(const HostCall &) const = default;
};

/// `config` in hexadecimal digits. Reading refuses sizes that no memory has.
void fields(JsonFields &f, HostCall &call);

/// The object that a driver of the host loads as a kernel.
std::vector<std::byte> encodeCall(const HostCall &call);
/// Whether an object is one that encodeCall() made.
bool isCall(std::span<const std::byte> object);
/// Invalid for a damaged one.
Result<HostCall> decodeCall(std::span<const std::byte> object);

} // namespace mgpu

#endif // MGPU_SUPPORT_HOSTCALL_H
