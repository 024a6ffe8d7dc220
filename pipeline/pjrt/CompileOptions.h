// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_COMPILEOPTIONS_H
#define MGPU_PIPELINE_PJRT_COMPILEOPTIONS_H

// The fields of XLA's CompileOptionsProto that a plan depends on, read from and
// written to the wire format of protocol buffers. Others are passed over.

#include "support/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mgpu::pipeline::pjrt {

struct CompileOptions {
  uint32_t replicas = 1, partitions = 1;
  /// The device of each process, replica by replica; empty: from 0.
  std::vector<int64_t> devices;
  /// The same, spelt out.
  std::vector<int64_t> devicesUsed() const;
  bool isPortable = false; ///< it runs on the device that an execution names

  /// The bytes may be anything.
  static Result<CompileOptions> parse(std::string_view bytes);
  std::string serialized() const;
  /// A DeviceAssignmentProto.
  static std::string assignment(uint32_t replicas, uint32_t partitions,
                                const std::vector<int64_t> &devices);
};

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_COMPILEOPTIONS_H
