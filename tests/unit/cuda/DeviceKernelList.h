// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_DEVICEKERNELLIST_H
#define MGPU_TESTS_UNIT_CUDA_DEVICEKERNELLIST_H

#include "device/cuda/api/DeviceKernels.h"

#include <vector>

namespace mgpu::fake {

/// One program of the CUDA target's own kernels.
struct DeviceProgram {
  struct Entry {
    std::string name, parameter; ///< the type in the text
    std::string twin;            ///< and in DeviceKernels.h,
    unsigned count = 1;          ///< how many there are
  };
  std::string source;
  std::vector<Entry> entries;
};

inline constexpr ElementType allElementTypes[] = {
    ElementType::I1,     ElementType::I8,  ElementType::I16,
    ElementType::I32,    ElementType::I64, ElementType::F8E4M3FN,
    ElementType::F8E5M2, ElementType::F16, ElementType::BF16,
    ElementType::F32,    ElementType::F64, ElementType::Index};
inline constexpr ReductionKind allReductions[] = {
    ReductionKind::Sum, ReductionKind::Prod, ReductionKind::Min,
    ReductionKind::Max};

/// All of them: the moves, and a reduction for each type and kind. index shares
/// those of i64 and comes last above.
inline std::vector<DeviceProgram> devicePrograms() {
  std::vector<DeviceProgram> programs;
  programs.push_back({device::moveKernelSource(),
                      {{"mgpu_move_1", "MgpuMoves<1>", "DeviceMove", 1},
                       {"mgpu_move_16", "MgpuMoves<16>", "DeviceMove",
                        device::maxMovesPerKernel}}});
  for (ElementType type : allElementTypes)
    for (ReductionKind kind : allReductions)
      if (type != ElementType::Index)
        programs.push_back({device::reductionKernelSource(type, kind),
                            {{device::reductionKernelName(type, kind),
                              "MgpuReduction", "DeviceReduction", 1}}});
  return programs;
}

/// The text of the k-th program in the namespace k<k>, its macros ended with
/// it: one file may hold them all.
inline std::string inNamespace(const DeviceProgram &program, size_t k) {
  std::string text =
      "namespace k" + std::to_string(k) + " {\n" + program.source + "}\n";
  constexpr std::string_view define = "#define ";
  for (size_t at = 0;
       (at = program.source.find(define, at)) != std::string::npos;) {
    at += define.size();
    size_t end = program.source.find_first_of(" (\n", at);
    text += "#undef " + program.source.substr(at, end - at) + "\n";
  }
  return text;
}

class FakeCuda;
/// Makes them known to the driver that is not there; generated.
void registerDeviceKernels(FakeCuda &fake);

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_DEVICEKERNELLIST_H
