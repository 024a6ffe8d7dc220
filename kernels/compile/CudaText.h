// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_CUDATEXT_H
#define MGPU_KERNELS_COMPILE_CUDATEXT_H

#include "kernels/abi/KernelImage.h"
#include "kernels/space/KernelSpace.h"
#include "support/Result.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mgpu::kernels {

struct Cubin;

/// A kernel as CUDA C++, with what chooses between it and others. It is
/// compiled without macros.
struct CudaText {
  std::string name;   ///< of the kernel; unique within the program
  KernelImage image;  ///< its blob includes nothing, unless its author wrote it
  std::string reason; ///< why the launch may, or may not, take another shape
  bool reshapable = false;
  /// The kernel's space on the CUDA target.
  std::optional<KernelSpace> space;
  /// How it computes: "threads" as the source has them, "tiles", "tensor_cores"
  /// or "wgmma" for a matrix product, "file" as its author wrote it, "cublaslt"
  /// for a candidate that has no text.
  std::string form = "threads";
  uint32_t leastArch = 0; ///< 80: sm_80 or later
  /// Why a candidate is not used. One without a text is not there.
  std::string disabled;
  /// Other texts of the same kernel, that are not used unless asked for. A
  /// bundle has none.
  std::vector<CudaText> candidates;
  bool operator==(const CudaText &) const = default;
};

/// All but the blobs.
void fields(JsonFields &f, CudaText &kernel);

/// The facts of a text on one line, without its candidates; parseFacts() reads
/// it.
std::string factsText(const CudaText &kernel);
/// Invalid where factsText() would not have written it, and as checkSpace().
Result<CudaText> parseFacts(std::string_view facts);

/// Whether it can be compiled for a GPU of `arch` ("sm_90"): empty, or why not.
/// A candidate that is disabled (CudaText::disabled) is not refused here for
/// that.
std::string archRefusal(const CudaText &kernel, const std::string &arch);
/// The architecture to compile it for, where the GPU is of `arch`: "sm_90a" of
/// "sm_90" for a text of sm_90a, which a GPU of sm_90 loads.
std::string archOf(const CudaText &kernel, const std::string &arch);

/// Whether it waits for what it follows when it is compiled for `arch`, with
/// the macro MGPU_PDL as 1: KernelImage::awaits. Texts written by hand do
/// not, nor does any before sm_90.
bool awaitsOn(const CudaText &kernel, const std::string &arch);
/// That macro, for BatchItem::macros; none where it does not.
std::vector<std::pair<std::string, std::string>>
awaitMacros(const CudaText &kernel, const std::string &arch);

/// The options that NVRTC is given. Emitted kernels keep every rounding; one
/// written by hand gets the compiler's own defaults, as its author tested it,
/// and finds the headers of the toolkit where there is one.
std::vector<std::string> compileOptions(const CudaText &kernel);

/// Whether the entry in a cubin takes the parameters that the launch gives.
/// Invalid, with what it does take, where not; a cubin whose form is not known
/// passes. `name` is the kernel's.
Result<void> checkParameters(const std::string &name, const KernelImage &image,
                             const Cubin &cubin);

// Kernels that a user wrote as CUDA C++: their file is their text.

/// The file as it is, below a macro for the default of each tunable. The launch
/// keeps its shape; only the tunables are there to choose. `name` is as
/// CudaText has it, `block` and `maxGrid` are those of the launches.
CudaText fileText(const planner::CudaFile &file, const std::string &name,
                  Dim3 block, Dim3 maxGrid);

/// The space of such a kernel on a target: its tunables alone.
KernelSpace fileSpace(const planner::CudaFile &file, Dim3 block, Dim3 maxGrid,
                      KernelTarget target);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_CUDATEXT_H
