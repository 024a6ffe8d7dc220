// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/pjrt/Extensions.h"

namespace mgpu::pipeline::pjrt {

PJRT_Extension_Base *extensions() { return nullptr; }

} // namespace mgpu::pipeline::pjrt
