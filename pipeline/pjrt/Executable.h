// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_EXECUTABLE_H
#define MGPU_PIPELINE_PJRT_EXECUTABLE_H

// A bundle, and a bundle that is open on devices of a client.

#include "device/api/BlobCache.h"
#include "pipeline/c/mgt.h"
#include "pipeline/pjrt/Buffer.h"
#include "pipeline/pjrt/CompileOptions.h"
#include "pipeline/pjrt/Extensions.h"
#include "pipeline/pjrt/Shape.h"

#include <optional>
#include <string_view>

namespace mgpu::pipeline::pjrt {

/// The arguments and results of one device in a call, as bundles that were made
/// with --per-device say them (dialect/conversion/SpmdPhases.h).
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

/// A bundle and what it says of itself. It does not change.
struct Compiled {
  device::Blob bundle;
  Signature signature;
  CompileOptions options;
  std::string serializedOptions; ///< as the caller gave them
  std::string hash;
  uint64_t deviceBytes = 0; ///< of all buffers of the program
  NamedValues costs;
  // For calls that give lists of these.
  std::vector<PJRT_Buffer_Type> outputTypes;
  std::vector<int64_t> outputDims;
  std::vector<size_t> outputRanks;
  std::vector<Layout> inputLayouts, outputLayouts;
  std::vector<Layout *> inputLayoutPointers, outputLayoutPointers;
  std::vector<const char *> inputKinds, outputKinds;
  std::vector<size_t> inputKindSizes, outputKindSizes;
};

/// Where the program has an argument or result of a device. A call's own memory
/// may take its place (mgt_bind).
struct Place {
  static constexpr size_t large = 1 << 19; ///< costs more to copy than to bind

  std::string name;
  size_t bytes = 0;
  std::shared_ptr<device::GpuContext> gpu; ///< null on the host
  /// Memory that no buffer has: on the host the program's, on a GPU the
  /// place's, null until a call needs it.
  std::shared_ptr<Storage> own;
  /// On a GPU the memory that the last call gave. It lives until another call
  /// gives other memory: what is freed may come back as another argument's.
  std::shared_ptr<Storage> bound;

  /// Whether a call's memory becomes the program's.
  bool binds(const Storage &storage) const {
    return gpu ? storage.isOnGpu() && storage.isOwn() && bytes > 0
               : bytes >= large;
  }
};

} // namespace mgpu::pipeline::pjrt

struct PJRT_Executable {
  std::shared_ptr<const mgpu::pipeline::pjrt::Compiled> of;
};

struct PJRT_LoadedExecutable {
  ~PJRT_LoadedExecutable() { mgt_close(program); }

  std::shared_ptr<const mgpu::pipeline::pjrt::Compiled> of;
  PJRT_Client *client = nullptr;
  std::vector<PJRT_Device *> devices; ///< by process
  std::vector<PJRT_LogicalDeviceIds> logical;

  std::mutex mutex;               ///< of what follows: one execution at a time
  mgt_program *program = nullptr; ///< null once it is deleted
  bool isLoaded = false; ///< on GPUs once a call has given all arguments
  /// One device behind the other.
  std::vector<mgpu::pipeline::pjrt::Place> arguments, results;
};

#endif // MGPU_PIPELINE_PJRT_EXECUTABLE_H
