// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The CUDA target's own kernels as NVRTC compiles them.

#include "DeviceKernelList.h"

#include "../compile/Nvrtc.h"
#include "kernels/compile/PtxasLog.h"

namespace {

using namespace mgpu;
using namespace mgpu::kernels;

TEST(DeviceKernels, CompileWithoutAWarning) {
  MGPU_OPEN_NVRTC(compiler);
  // All of them for one architecture, and for the others one of each type;
  // together, because alone each costs NVRTC's fixed price.
  for (const char *arch : {"sm_90", "sm_80", "sm_100"}) {
    std::string source;
    std::vector<std::string> entries;
    size_t number = 0;
    for (const fake::DeviceProgram &program : fake::devicePrograms()) {
      const std::string &name = program.entries[0].name;
      if (std::string_view(arch) != "sm_90" &&
          name.starts_with("mgpu_reduce_") &&
          !name.starts_with("mgpu_reduce_sum_"))
        continue;
      source += fake::inNamespace(program, number++);
      for (const fake::DeviceProgram::Entry &entry : program.entries)
        entries.push_back(entry.name);
    }
    auto result = compiler->compile(
        {source, "device-kernels.cu", {"--fmad=false"}, arch});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_FALSE(hasWarning(result->log)) << result->log;
    for (const std::string &entry : entries) {
      const EntryUsage *usage = result->find(entry);
      ASSERT_NE(usage, nullptr) << entry;
      EXPECT_EQ(usage->spillStoreBytes + usage->spillLoadBytes, 0u)
          << entry << " for " << arch;
      EXPECT_EQ(usage->stackBytes, 0u) << entry << " for " << arch;
    }
  }
}

} // namespace
