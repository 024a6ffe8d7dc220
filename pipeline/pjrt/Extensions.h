// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PJRT_EXTENSIONS_H
#define MGPU_PIPELINE_PJRT_EXTENSIONS_H

#include "pipeline/pjrt/Abi.h"

namespace mgpu::pipeline::pjrt {

/// The chain of the plugin's extensions.
PJRT_Extension_Base *extensions();

} // namespace mgpu::pipeline::pjrt

#endif // MGPU_PIPELINE_PJRT_EXTENSIONS_H
