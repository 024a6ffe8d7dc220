// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_KERNELRECIPE_H
#define MGPU_KERNELS_COMPILE_KERNELRECIPE_H

// One kernel in one configuration for GPUs of one architecture: what NVRTC is
// given, and how the result is launched. Both are made here, together, and
// nowhere else: code that is compiled with one form and launched with another
// computes a part of its work, and says nothing.

#include "kernels/abi/LaunchForm.h"
#include "kernels/compile/CudaText.h"
#include "kernels/compile/NvrtcCompiler.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mgpu::kernels {

// Several small kernels as one program: NVRTC's fixed cost is ten times that
// of a small kernel, so a batch costs a tenth of its kernels compiled alone.

/// One kernel of a batch: a header-free program with one entry function.
struct BatchItem {
  std::string source;
  std::string entry;     ///< its name in `source`
  std::string entryName; ///< its name in the cubin; unique within the batch
  /// Macros of this item alone: {"MGPU_ITEMS", "4"}.
  std::vector<std::pair<std::string, std::string>> macros;
};

/// The items as one program, each in a namespace of its own. A macro that a
/// source defines for itself where it is not given (#ifndef) is undefined
/// again after it; so are the item's own.
std::string batchSource(std::span<const BatchItem> items);

struct KernelRecipe {
  std::string name;  ///< the kernel's
  KernelImage image; ///< as it is launched; its blob is the CUDA C++
  std::vector<std::pair<std::string, std::string>> macros;
  std::vector<std::string> options; ///< beside the macros
  std::string compileArch;          ///< "sm_90a" for a GPU of image.arch sm_90

  /// The program as one among others, or alone.
  BatchItem item() const;
  CompileJob job() const;

  /// The image with its code in the text's place. Errors, about an entry that
  /// the code has not, other parameters, or another launch form: Invalid for
  /// what a user wrote, Internal for what was emitted.
  Result<KernelImage> imageOf(const CompiledKernel &compiled,
                              const Cubin &cubin) const;
  /// The image of code that came compiled, of which only what can be read is
  /// checked.
  KernelImage imageOf(std::span<const std::byte> cubin) const;
};

/// `text`, which has a space, in `config`.
KernelRecipe recipeOf(const CudaText &text, const KernelConfig &config,
                      const std::string &arch);
/// `text` in the default of its space, or as its author wrote it.
KernelRecipe recipeOf(const CudaText &text, const std::string &arch);

/// `cubins`, for GPUs of `arch`, are those of the texts, in their order: the
/// objects, as Driver::loadKernel of the CUDA target takes them.
std::vector<std::vector<std::byte>>
cudaObjects(const std::vector<CudaText> &texts,
            const std::vector<std::vector<std::byte>> &cubins,
            const std::string &arch);

/// Makes `image` launch what `space` says of `config`: its block, what that
/// covers, its cluster, its dynamic shared memory, and which algorithm of a
/// library computes a product, if any does.
void setLaunch(KernelImage &image, const KernelSpace &space,
               const KernelConfig &config);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_KERNELRECIPE_H
