// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CudaText.h"

#include "kernels/compile/CubinElf.h"
#include "support/LineText.h"

#include <cstdlib>
#include <fmt/ranges.h>
#include <unistd.h>

namespace mgpu::kernels {

std::string factsText(const CudaText &kernel) {
  auto dims = [](Dim3 d) { return fmt::format("{} {} {}", d.x, d.y, d.z); };
  return fmt::format(
      "name {} entry {} block {} launch {} covers {} shared {} {} {} "
      "parameters {}{} {}",
      quoteText(kernel.name), quoteText(kernel.entry), dims(kernel.block),
      dims(kernel.launchBlock), dims(kernel.covers), kernel.dynamicSharedBytes,
      kernel.reshapable ? "reshapable" : "fixed",
      kernel.takesPart ? "part" : "whole", kernel.parameterBytes.size(),
      kernel.parameterBytes.empty()
          ? ""
          : fmt::format(" {}", fmt::join(kernel.parameterBytes, " ")),
      quoteText(kernel.reason));
}

Result<CudaText> parseFacts(std::string_view facts) {
  LineReader line("facts of a kernel,", facts, 1);
  CudaText kernel;
  MGPU_TRY(line.keyword("name"));
  MGPU_TRY_ASSIGN(kernel.name, line.quoted());
  MGPU_TRY(line.keyword("entry"));
  MGPU_TRY_ASSIGN(kernel.entry, line.quoted());
  for (auto [word, dims] : {std::pair("block", &kernel.block),
                            {"launch", &kernel.launchBlock},
                            {"covers", &kernel.covers}}) {
    MGPU_TRY(line.keyword(word));
    for (uint32_t *size : {&dims->x, &dims->y, &dims->z}) {
      MGPU_TRY_ASSIGN(*size, line.integer<uint32_t>("dimension"));
    }
  }
  MGPU_TRY(line.keyword("shared"));
  MGPU_TRY_ASSIGN(kernel.dynamicSharedBytes,
                  line.integer<uint32_t>("byte count"));
  kernel.reshapable = line.peek() == "reshapable";
  MGPU_TRY(line.keyword(kernel.reshapable ? "reshapable" : "fixed"));
  kernel.takesPart = line.peek() == "part";
  MGPU_TRY(line.keyword(kernel.takesPart ? "part" : "whole"));
  MGPU_TRY(line.keyword("parameters"));
  MGPU_TRY_ASSIGN(uint32_t count, line.integer<uint32_t>("count"));
  for (uint32_t k = 0; k < count; ++k) {
    MGPU_TRY_ASSIGN(uint32_t bytes, line.integer<uint32_t>("byte count"));
    kernel.parameterBytes.push_back(bytes);
  }
  MGPU_TRY_ASSIGN(kernel.reason, line.quoted());
  MGPU_TRY(line.expectEnd());
  return kernel;
}

std::vector<std::string> compileOptions(const CudaText &kernel) {
  if (kernel.takesPart)
    return {"--fmad=false"};
  std::vector<std::string> options;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH", ""}) {
    const char *root = *variable ? std::getenv(variable) : "/usr/local/cuda";
    if (!root || !*root)
      continue;
    std::string folder = std::string(root) + "/include";
    if (access((folder + "/cuda_fp16.h").c_str(), R_OK) != 0)
      continue;
    options.push_back("-I" + folder);
    break;
  }
  return options;
}

Result<void> checkParameters(const CudaText &kernel, const Cubin &cubin) {
  constexpr uint32_t launchBytes = 48; // an MgpuLaunch
  std::vector<uint32_t> given = kernel.parameterBytes, taken;
  if (kernel.takesPart)
    given.push_back(launchBytes);
  auto entry = cubin.entries.find(kernel.entry);
  if (entry == cubin.entries.end())
    return {};
  for (const CubinParameter &parameter : entry->second.parameters)
    taken.push_back(parameter.bytes);
  if (taken == given || taken.empty())
    return {};
  return fail(ErrorKind::Invalid,
              fmt::format("kernel {}: its entry '{}' takes {} parameters of "
                          "[{}] bytes, but the launch gives {} of [{}]: a "
                          "memref is a pointer, index a long long, another "
                          "number has its own width",
                          kernel.name, kernel.entry, taken.size(),
                          fmt::join(taken, ", "), given.size(),
                          fmt::join(given, ", ")));
}

} // namespace mgpu::kernels
