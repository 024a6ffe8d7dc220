// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CudaFileText.h"

#include "kernels/space/TunableRule.h"
#include "support/LineText.h"

#include <fmt/format.h>

namespace mgpu::kernels {

using P = KernelParameter;

KernelSpace fileSpace(const planner::CudaFile &file, Dim3 block, Dim3 maxGrid,
                      KernelTarget target) {
  KernelSpace space;
  space.target = target;
  space.block = block;
  space.maxGrid = maxGrid;
  space.reason =
      target == KernelTarget::Cuda
          ? fmt::format("keeps its launch: CUDA C++ of its own, '{}'",
                        file.file)
          : fmt::format("keeps its launch: C++ of its own, '{}'",
                        file.hostEntry);
  space.sharedBytes = file.dynamicSharedBytes;
  space.defaults[P::BlockX] = block.x;
  space.defaults[P::BlockY] = block.y;
  space.defaults[P::BlockZ] = block.z;
  space.defaults[P::Vector] = 1;
  space.offerDefaults(space.reason);
  for (const planner::KernelTunable &tunable : file.tunables)
    space.addTunable(tunable);
  for (const std::string &rule : file.rules)
    if (auto read = parseRule(rule, file.tunables))
      space.constraints.push_back(std::move(*read));
    else // of a bundle of anyone's: the defaults are left
      space.require(rule, 1, Relation::AtMost, 0, read.error().message);
  return space;
}

CudaText fileText(const planner::CudaFile &file, const std::string &name,
                  Dim3 block, Dim3 maxGrid) {
  CudaText text;
  text.name = name;
  text.form = "file";
  text.space = fileSpace(file, block, maxGrid, KernelTarget::Cuda);
  text.reason = text.space->reason;
  KernelImage &image = text.image;
  image.entry = file.entry;
  image.takesPart = false;
  image.sourceBlock = image.block = block;
  image.covers = text.space->covered(text.space->defaults);
  image.dynamicSharedBytes = file.dynamicSharedBytes;
  for (const planner::CudaFile::Parameter &parameter : file.parameters)
    image.parameterBytes.push_back(
        parameter.isPointer ? 8 : sizeBytes(parameter.type));
  for (const auto &[macro, values] : file.tunables)
    image.blob += fmt::format("#ifndef {0}\n#define {0} {1}\n#endif\n", macro,
                              values.front());
  image.blob += fmt::format("#line 1 {}\n{}", quoteText(file.file), file.text);
  if (!image.blob.ends_with('\n'))
    image.blob += '\n';
  return text;
}

} // namespace mgpu::kernels
