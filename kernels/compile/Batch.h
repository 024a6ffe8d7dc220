// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_BATCH_H
#define MGPU_KERNELS_COMPILE_BATCH_H

// Several small kernels as one program: NVRTC's fixed cost is ten times that
// of a small kernel, so a batch costs a tenth of its kernels compiled alone.

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mgpu::kernels {

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

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_BATCH_H
