// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_DAG_KERNELSPEC_H
#define MGPU_PLANNER_DAG_KERNELSPEC_H

// A kernel as an importer or a builder describes it: MLIR, or a file of CUDA
// C++, which needs no compiler of ours; a builder adds C++ for the host.

#include "planner/dag/KernelFacts.h"
#include "support/HostCall.h"
#include "support/Result.h"
#include "support/Types.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace mgpu {
class JsonFields;
} // namespace mgpu

namespace mgpu::planner {

/// The text of a self-contained MLIR module with one function `@entry`.
struct MlirKernel {
  std::string text;
  bool operator==(const MlirKernel &) const = default;
};

/// No kernel has more macros of its own (mgpu.launch's tunables).
inline constexpr size_t mostKernelTunables = 8;

/// A macro that only some kernels have, and the values it may take.
struct KernelTunable {
  std::string name;
  std::vector<uint32_t> values; ///< the default first, never empty
  bool operator==(const KernelTunable &) const = default;
};

/// A `__global__` function that a user wrote.
struct CudaFile {
  /// A pointer to elements of `type`, or one number of it.
  struct Parameter {
    ElementType type = ElementType::F32;
    bool isPointer = false;
    bool operator==(const Parameter &) const = default;
  };

  std::string text;  ///< of the whole file
  std::string file;  ///< its name, for messages
  std::string entry; ///< declared extern "C"
  std::vector<Parameter> parameters;
  std::vector<KernelTunable> tunables; ///< at most mostKernelTunables
  /// The rules that the tunables keep to (kernels/space/SpaceText.h).
  std::vector<std::string> rules = {};
  uint32_t dynamicSharedBytes = 0;
  /// An MlirKernel's text that computes the same, for the host; may be empty.
  std::string reference;
  /// C++ that computes one block, for the host
  /// (kernels/compile/HostCompiler.h), and the function in it; may be empty.
  std::string host = {}, hostEntry = {};
  /// Compiled by others, cubins or PTX, by architecture ("sm_90"). With them
  /// `text` may be empty.
  std::map<std::string, std::string> cubins = {};
  /// The process registers the function, which the host target calls.
  std::optional<HostCall> call = std::nullopt;
  /// Whether nothing says what it computes: `entry` is a custom call's name.
  bool isOpaque() const {
    return !call && text.empty() && cubins.empty() && reference.empty() &&
           host.empty();
  }
  bool operator==(const CudaFile &) const = default;
};

/// Facts that copies of a kernel share; null: nothing is known.
struct SharedFacts : std::shared_ptr<const KernelFacts> {
  SharedFacts() = default;
  SharedFacts(KernelFacts facts)
      : std::shared_ptr<const KernelFacts>(
            std::make_shared<const KernelFacts>(std::move(facts))) {}
  bool operator==(const SharedFacts &other) const {
    return get() == other.get() || (*this && other && **this == *other);
  }
};

/// Equal `hash` means equal behaviour for equal arguments.
struct KernelSpec {
  std::string name; ///< for people; unique within the DAG
  std::string hash; ///< SHA-256 of the canonical source and block size
  /// Nothing where it was not asked for (ImportOptions::kernelTexts).
  std::variant<std::monostate, MlirKernel, CudaFile> source;
  /// "file:line:column" of the launch. A launch that stands for several
  /// operations has all of theirs, " + " between them.
  std::string location;
  Dim3 block; ///< threads per block it was specialised for
  uint32_t numArguments = 0;
  SharedFacts facts = {};
  bool operator==(const KernelSpec &) const = default;

  const CudaFile *cudaFile() const { return std::get_if<CudaFile>(&source); }
  /// The matrix product that it is known to be; null: it is none.
  const Product *product() const {
    return facts && facts->product ? &*facts->product : nullptr;
  }
  /// Whether that is not excluded: without facts it is not known.
  bool mayBeProduct() const {
    return facts ? product() != nullptr
                 : std::holds_alternative<MlirKernel>(source);
  }
  /// The module to run on the host. Unsupported for a CudaFile without a
  /// reference; Invalid where there is no source.
  Result<const std::string *> hostText() const;
};

void fields(JsonFields &f, KernelTunable &tunable);
/// All but the texts and cubins, which JSON cannot hold byte by byte, and what
/// is beside them.
void fields(JsonFields &f, CudaFile &kernel);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_DAG_KERNELSPEC_H
