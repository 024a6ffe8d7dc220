// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "PtxTwin.h"

#include "kernels/compile/NvrtcLibrary.h"
#include "support/FileIO.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

namespace mgpu::kernels {

Result<std::string> clangPtx(const std::string &text, const std::string &arch) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "mgpu-ptx-XXXXXX").string();
  const std::filesystem::path folder = mkdtemp(pattern.data());
  const std::string source = folder / "text.cu", made = folder / "text.ptx";
  MGPU_TRY(writeFileAtomic(source, text));
  const std::string command = fmt::format(
      "{} -x cuda --cuda-device-only --cuda-gpu-arch={} -nocudainc -nocudalib "
      "-Wno-unknown-cuda-version -S -O2 -ffp-contract=off -w "
      "-D__CUDA_ARCH_FEAT_SM90_ALL -include {}/CudaForClang.h {} -o {}",
      MGPU_SHIM_CXX, arch, MGPU_SHIM_INCLUDE, source, made);
  if (std::system(command.c_str()) != 0)
    return fail(ErrorKind::Invalid, command + " failed; its input is kept");
  Result<std::string> ptx = readText(made, 256 << 20);
  std::filesystem::remove_all(folder);
  return ptx;
}

Result<void> PtxTwins::compile(const NvrtcLibrary *nvrtc,
                               const std::string &arch) {
  std::string text;
  if (nvrtc) {
    MGPU_TRY_ASSIGN(const NvrtcLibrary::Output output,
                    nvrtc->compile(twins.source(), "twins.cu",
                                   {"--fmad=false", "-lineinfo",
                                    "--gpu-architecture=" + arch},
                                   {}));
    if (!output.ok)
      return fail(ErrorKind::Invalid, output.log);
    text = output.ptx;
  } else {
    MGPU_TRY_ASSIGN(text, clangPtx(twins.source(), arch));
  }
  MGPU_TRY_ASSIGN(ptx::Module parsed, ptx::parse(std::move(text)));
  const auto module = std::make_shared<ptx::Module>(std::move(parsed));
  instances.clear();
  for (const TwinConfig &config : twins.configs) {
    MGPU_TRY_ASSIGN(ptx::Program program, ptx::decode(module, config.entry));
    instances.try_emplace(config.entry,
                          std::make_shared<ptx::Program>(std::move(program)));
  }
  return {};
}

Result<void> PtxTwins::launch(const TwinConfig &config,
                              const std::vector<uint64_t> &arguments,
                              const unsigned launch[12],
                              const unsigned blocks[3],
                              const std::vector<ptx::Region> &memory) {
  ptx::Instance &instance = instances.at(config.entry);
  const auto &taken = instance.program->parameters;
  ptx::LaunchOptions own = options;
  own.grid = {blocks[0], blocks[1], blocks[2]};
  if (own.grid.volume() == 0)
    return {};
  own.block = config.config.block();
  own.sharedBytes = config.dynamicSharedBytes();
  own.regions = memory;
  own.parameters.resize(instance.program->parameterBytes);
  for (size_t k = 0; k < taken.size(); ++k) {
    const void *from = k == arguments.size() ? static_cast<const void *>(launch)
                       : config.tensorMap(k)
                           ? reinterpret_cast<const void *>(arguments[k])
                           : &arguments[k];
    const bool isValue = k < arguments.size() && !config.tensorMap(k);
    std::memcpy(own.parameters.data() + taken[k].offset, from,
                isValue ? std::min(taken[k].bytes, 8u) : taken[k].bytes);
  }
  MGPU_TRY_ASSIGN(const ptx::LaunchResult result, ptx::run(instance, own));
  instructions += result.instructions;
  return {};
}

Result<void> PtxTwins::run(const std::string &entry, Dim3 grid,
                           std::vector<uint64_t> arguments,
                           std::vector<ptx::Region> memory) {
  for (const TwinConfig &config : twins.configs) {
    if (config.entry != entry)
      continue;
    std::vector<ptx::TensorMap> maps;
    for (const CudaTwins::Part &part :
         CudaTwins::partsOf(config, grid, std::move(arguments), maps))
      MGPU_TRY(
          launch(config, part.arguments, part.launch, part.blocks, memory));
    return {};
  }
  return fail(ErrorKind::Internal, "there is no entry " + entry);
}

} // namespace mgpu::kernels
