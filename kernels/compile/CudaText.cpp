// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CudaText.h"

#include "kernels/abi/CubinElf.h"
#include "kernels/space/SpaceText.h"
#include "support/JsonFields.h"
#include "support/LineText.h"

#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

namespace mgpu::kernels {

void fields(JsonFields &f, CudaText &kernel) {
  f("name", kernel.name);
  f("image", kernel.image);
  f("reason", kernel.reason);
  f("reshapable", kernel.reshapable);
  f("space", kernel.space);
  f("form", kernel.form);
  f("least_arch", kernel.leastArch);
  f("disabled", kernel.disabled);
  f("candidates", kernel.candidates);
}

std::string factsText(const CudaText &kernel) {
  CudaText facts = kernel;
  facts.candidates.clear();
  return JsonFields::text(facts);
}

Result<CudaText> parseFacts(std::string_view facts) {
  MGPU_TRY_ASSIGN(CudaText kernel,
                  JsonFields::read<CudaText>("the facts of a kernel", facts));
  if (kernel.space)
    MGPU_TRY(checkSpace(*kernel.space));
  return kernel;
}

/// "sm_90a" without the letter, and its number.
static std::pair<std::string_view, uint32_t> gpuOf(std::string_view arch) {
  while (!arch.empty() && arch.back() >= 'a' && arch.back() <= 'z')
    arch.remove_suffix(1);
  uint32_t number = 0;
  for (char c : arch)
    if (c >= '0' && c <= '9')
      number = 10 * number + uint32_t(c - '0');
  return {arch, number};
}

std::string archRefusal(const CudaText &kernel, const std::string &arch) {
  if (gpuOf(arch).second < kernel.leastArch)
    return fmt::format("needs sm_{} or later, and not {}", kernel.leastArch,
                       arch);
  if (!kernel.image.arch.empty() &&
      gpuOf(arch).first != gpuOf(kernel.image.arch).first)
    return fmt::format("its instructions are of {} alone, and not of {}",
                       kernel.image.arch, arch);
  return "";
}

std::string archOf(const CudaText &kernel, const std::string &arch) {
  constexpr uint32_t withWarpgroups = 90;
  if (kernel.image.hasWarpgroups && gpuOf(arch).second == withWarpgroups)
    return fmt::format("sm_{}a", withWarpgroups);
  return !kernel.image.arch.empty() && archRefusal(kernel, arch).empty()
             ? kernel.image.arch
             : arch;
}

bool awaitsOn(const CudaText &kernel, const std::string &arch) {
  constexpr uint32_t firstWithGridControl = 90;
  return kernel.image.awaits && kernel.image.takesPart &&
         gpuOf(arch).second >= firstWithGridControl;
}

std::vector<std::pair<std::string, std::string>>
awaitMacros(const CudaText &kernel, const std::string &arch) {
  if (!awaitsOn(kernel, arch))
    return {};
  return {{"MGPU_PDL", "1"}};
}

std::vector<std::string> compileOptions(const CudaText &kernel) {
  if (kernel.image.takesPart)
    return {"--fmad=false"};
  // Not from where the process happens to be: the cache knows the file's own
  // text alone.
  std::vector<std::string> options{"--no-source-include"};
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

Result<void> checkParameters(const std::string &name, const KernelImage &image,
                             const Cubin &cubin) {
  constexpr uint32_t launchBytes = 48; // an MgpuLaunch
  std::vector<uint32_t> given = image.parameterBytes, taken;
  if (image.takesPart)
    given.push_back(launchBytes);
  auto entry = cubin.entries.find(image.entry);
  if (entry == cubin.entries.end())
    return {};
  const uint64_t threads = image.block.volume(),
                 most = entry->second.maxThreads;
  if (most != 0 && threads > most)
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {}: its entry '{}' is compiled for blocks "
                            "of at most {} threads (__launch_bounds__), but "
                            "the launch has {}",
                            name, image.entry, most, threads));
  for (const CubinParameter &parameter : entry->second.parameters)
    taken.push_back(parameter.bytes);
  if (taken == given || taken.empty())
    return {};
  return fail(ErrorKind::Invalid,
              fmt::format("kernel {}: its entry '{}' takes {} parameters of "
                          "[{}] bytes, but the launch gives {} of [{}]: a "
                          "memref is a pointer, index a long long, another "
                          "number has its own width",
                          name, image.entry, taken.size(),
                          fmt::join(taken, ", "), given.size(),
                          fmt::join(given, ", ")));
}

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
