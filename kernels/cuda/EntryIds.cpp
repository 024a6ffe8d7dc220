// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ids that a thread has in the source, and whether it is one of the launch.
#include "kernels/cuda/EntryText.h"

#include "llvm/ADT/STLExtras.h"

namespace mgpu::kernels::cuda {

using llvm::StringRef;

bool handsOnThread(StringRef body) {
  return body.contains("(at,") || body.contains("(at)");
}

/// The fields of `at` that `body` asks for: either the ones that are the same
/// for all items, or the others.
std::string EntryText::ids(const std::string &indent, const std::string &body,
                           bool inLoop) const {
  bool all = handsOnThread(body);
  std::string text;
  auto set = [&](const std::string &field, const std::string &value) {
    if (all || StringRef(body).contains("at." + field))
      text += indent + "at." + field + " = (int)" + value + ";\n";
  };
  for (char upper : {'X', 'Y', 'Z'}) {
    std::string u(1, upper), l(1, char(upper - 'A' + 'a'));
    bool isX = upper == 'X';
    if (!inLoop)
      set("grid" + u, "launch.grid" + u);
    if (kernel.reshapable) {
      if (inLoop != isX)
        continue;
      const Axis *axis = llvm::find_if(
          axes, [&](const Axis &each) { return each.upper == upper; });
      if (axis == axes.end()) {
        set("block" + u, "0");
        set("thread" + u, "0");
        continue;
      }
      std::string size = std::to_string(axis->block);
      set("block" + u, "(global" + u + " / " + size + ")");
      set("thread" + u, "(global" + u + " % " + size + ")");
    } else if (!inLoop) {
      set("thread" + u, isX && vectorForm ? "threadIdx.x * MGPU_VECTOR"
                        : upper == 'Y' && mayLieBeside ? "0"
                                                       : "threadIdx." + l);
      if (!isX)
        set("block" + u, "(launch.base" + u + " + blockIdx." + l +
                             " + launch.first" + u + ")");
    } else if (isX) {
      set("blockX", "sourceX");
    }
  }
  if (!inLoop && hasThread)
    text = indent + "MgpuThread at;\n" + text;
  return text;
}

/// Threads along an axis that the launch does not have leave.
std::string EntryText::leaveWithoutAxis() const {
  std::string noAxis, blocks;
  for (char upper : {'Y', 'Z'})
    if (llvm::none_of(axes, [&](const Axis &a) { return a.upper == upper; })) {
      std::string u(1, upper), l(1, char(upper - 'A' + 'a'));
      noAxis += (noAxis.empty() ? "" : " || ") + ("threadIdx." + l + " != 0");
      blocks += (blocks.empty() ? "" : " * ") + ("MGPU_BLOCK_" + u);
    }
  if (noAxis.empty())
    return "";
  return "#if " + blocks + " > 1\n  if (" + noAxis + ")\n    return;\n#endif\n";
}

/// Whether a thread is in the launch, where blocks hang over.
std::string EntryText::insideLaunch() const {
  std::string inside;
  for (const Axis &axis : axes) {
    std::string u(1, axis.upper), size = std::to_string(axis.block);
    // A launch has no more clusters than it takes to cover its grid: where they
    // divide a block of the source, none hangs over.
    std::string unit = "MGPU_BLOCK_" + u;
    if (axis.upper == 'X')
      unit = "(" + unit + " * MGPU_ITEMS * MGPU_VECTOR * MGPU_CLUSTER_X)";
    if (!inside.empty())
      inside += " && ";
    inside += "(" + size + " % " + unit + " == 0 || global" + u + " < (" +
              count + ")launch.end" + u + " * " + size + ")";
  }
  return inside;
}

} // namespace mgpu::kernels::cuda
