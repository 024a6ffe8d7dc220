// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_EXTENSIONS_H
#define MGPU_PIPELINE_PJRT_EXTENSIONS_H

// The one extension of the interface that this plugin has: layouts, which are
// always row-major.

#include "pipeline/pjrt/Abi.h"
#include "pipeline/pjrt/Shape.h"

struct PJRT_Layouts_MemoryLayout {
  std::string text; ///< as XLA writes it: "{1,0}"
};

namespace mgpu::pipeline::pjrt {

using Layout = PJRT_Layouts_MemoryLayout;
std::vector<Layout> layoutsOf(const std::vector<Shape> &shapes);

/// The chain of the plugin's extensions.
PJRT_Extension_Base *extensions();

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_EXTENSIONS_H
