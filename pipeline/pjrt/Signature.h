// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_SIGNATURE_H
#define MGPU_PIPELINE_PJRT_SIGNATURE_H

#include "pipeline/pjrt/Shape.h"

#include <optional>
#include <string_view>

namespace mgpu::pipeline::pjrt {

/// The arguments and results of one device in a call, as bundles that were made
/// with --per-device say them (dialect/conversion/PerDevice.h).
struct Signature {
  uint32_t replicas = 1, partitions = 1;
  std::string name;
  std::vector<Shape> arguments, results;
  /// By argument: it is donated, to this result.
  std::vector<std::optional<uint32_t>> donated;

  uint32_t processes() const { return replicas * partitions; }
  /// By the lines of a bundle's options. Errors: Invalid where they lack it,
  /// Unsupported for a type that buffers do not have.
  static Result<Signature> parse(std::string_view lines);
};

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_SIGNATURE_H
