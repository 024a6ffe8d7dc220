// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/NvrtcLibrary.h"

namespace mgpu::kernels {

NvrtcLibrary::~NvrtcLibrary() = default;

Result<std::unique_ptr<NvrtcLibrary>> NvrtcLibrary::open(const std::string &) {
  return fail(ErrorKind::Absent,
              "cannot compile CUDA kernels: this build has no NVRTC support, "
              "because nvrtc.h was not found when it was configured; install "
              "the CUDA toolkit (12.8 or later; package cuda-nvrtc-dev) and "
              "configure again with -DMGPU_CUDA=ON");
}

} // namespace mgpu::kernels
