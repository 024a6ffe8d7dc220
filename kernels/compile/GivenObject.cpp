// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/GivenObject.h"

#include "kernels/compile/CudaText.h"
#include "kernels/compile/NvrtcLibrary.h"
#include "kernels/ptx/PtxProgram.h"
#include "support/Sha256.h"

#include <fmt/format.h>

namespace mgpu::kernels {

using planner::CudaFile, planner::KernelSpec;

/// PTX among what others compiled, of the highest architecture; or null.
static const std::string *givenPtx(const CudaFile &file) {
  const std::string *found = nullptr;
  for (const auto &[arch, blob] : file.cubins)
    if (!blob.starts_with("\x7f"
                          "ELF") &&
        blob.find(".version") != std::string::npos)
      found = &blob;
  return found;
}

bool runsAsGiven(const KernelSpec &kernel) {
  const CudaFile *file = kernel.cudaFile();
  return file && file->host.empty() && file->reference.empty() &&
         (file->call || !file->text.empty() || givenPtx(*file));
}

/// By NVRTC, for the oldest architecture that it compiles for.
static Result<std::string> compilePtx(const CudaText &text,
                                      const std::string &name,
                                      std::vector<std::string> macros) {
  Result<std::unique_ptr<NvrtcLibrary>> library = NvrtcLibrary::open("");
  if (!library)
    return failIn(fmt::format("kernel '{}' is CUDA C++, which the host target "
                              "runs by the PTX that NVRTC makes of it: ",
                              name),
                  library.error());
  std::string complaint;
  for (const char *arch : {"sm_80", "sm_90", "sm_90a"}) {
    std::vector<std::string> options = compileOptions(text);
    options.insert(options.end(), macros.begin(), macros.end());
    options.push_back("-lineinfo");
    options.push_back(fmt::format("--gpu-architecture={}", arch));
    MGPU_TRY_ASSIGN(
        const NvrtcLibrary::Output output,
        (*library)->compile(text.image.blob, name + ".cu", options, {}));
    if (output.ok && !output.ptx.empty())
      return output.ptx;
    if (complaint.empty())
      complaint = output.log;
  }
  size_t at = complaint.find("error:");
  at = at == std::string::npos ? 0 : complaint.rfind('\n', at) + 1;
  return fail(ErrorKind::Invalid,
              fmt::format("kernel '{}': NVRTC refuses its CUDA C++: {}", name,
                          complaint.substr(at, complaint.find('\n', at) - at)));
}

Result<std::vector<std::byte>>
givenObject(const KernelSpec &kernel,
            const std::vector<std::pair<std::string, uint32_t>> &macros,
            device::BlobCache *cache) {
  const CudaFile &file = *kernel.cudaFile();
  if (file.call)
    return encodeCall(*file.call);
  CudaText text = fileText(file, kernel.name, kernel.block, Dim3{});
  std::vector<std::string> options;
  for (const auto &[name, value] : macros)
    options.push_back(fmt::format("-D{}={}", name, value));
  if (const std::string *given = givenPtx(file)) {
    text.image.blob = *given;
  } else {
    Sha256 hash;
    hash.addField("PTX for the host 1").addField(text.image.blob);
    hash.addField(fmt::format("{}", fmt::join(options, " ")));
    const std::string key = hash.hex();
    auto known = cache ? cache->find(key) : std::nullopt;
    if (known) {
      text.image.setBytes(*known);
    } else {
      MGPU_TRY_ASSIGN(text.image.blob,
                      compilePtx(text, kernel.name, std::move(options)));
      if (cache)
        cache->store(key,
                     {text.image.bytes().begin(), text.image.bytes().end()});
    }
  }
  // An instruction that is not executed is refused now, not at a launch.
  Result<ptx::Module> module = ptx::parse(text.image.blob);
  if (!module)
    return failIn(fmt::format("the PTX of kernel '{}', ", kernel.name),
                  module.error());
  MGPU_TRY(ptx::decode(std::make_shared<ptx::Module>(std::move(*module)),
                       file.entry));
  return encodeImage(text.image);
}

} // namespace mgpu::kernels
