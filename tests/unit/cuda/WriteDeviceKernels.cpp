// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the CUDA target's own kernels as one C++ file over KernelShim.h, each
// program in a namespace, and a function that registers them.
#include "DeviceKernelList.h"

#include <cstdio>

using namespace mgpu;

int main() {
  std::printf("#include \"KernelShim.h\"\n"
              "#include \"device/cuda/api/DeviceKernels.h\"\n");
  std::string registrations;
  size_t number = 0;
  for (const fake::DeviceProgram &program : fake::devicePrograms()) {
    std::printf("%s", fake::inNamespace(program, number).c_str());
    std::string space = "k" + std::to_string(number++);
    for (const fake::DeviceProgram::Entry &entry : program.entries) {
      std::string type = space + "::" + entry.parameter;
      registrations +=
          "  static_assert(sizeof(" + type +
          ") == sizeof(mgpu::device::" + entry.twin + ") * " +
          std::to_string(entry.count) + ");\n  fake.kernels[\"" + entry.name +
          "\"] = {\n      [](void **parameters, const unsigned "
          "grid[3], const unsigned block[3]) {\n"
          "        shimLaunch(grid, block, [&] { " +
          space + "::" + entry.name + "(*static_cast<const " + type +
          " *>(parameters[0])); });\n      },\n      "
          "{sizeof(" +
          type + ")}};\n";
    }
  }
  std::printf("namespace mgpu::fake {\n"
              "void registerDeviceKernels(FakeCuda &fake) {\n%s}\n}\n",
              registrations.c_str());
  return 0;
}
