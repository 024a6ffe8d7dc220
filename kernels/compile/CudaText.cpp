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
  std::string text = fmt::format(
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
  if (!kernel.onlyArch.empty())
    text += fmt::format(" only {}", quoteText(kernel.onlyArch));
  if (kernel.awaits)
    text += " awaits";
  if (const auto &product = kernel.product) {
    text += fmt::format(" product {} {} {} {} {} {}",
                        toString(product->factors), toString(product->sums),
                        product->m, product->n, product->k, product->batch);
    for (const MatrixProduct::Matrix &matrix : product->matrices)
      text += fmt::format(" {} {} {} {}", matrix.argument, matrix.offset,
                          matrix.rowStride, matrix.batchStride);
  }
  for (const TensorMap &map : kernel.tensorMaps)
    text +=
        fmt::format(" map {} {} {} {} {} {}", map.argument, map.offsetBytes,
                    toString(map.type), fmt::join(map.sizes, " "),
                    fmt::join(map.strideBytes, " "), fmt::join(map.box, " "));
  return text;
}

static Result<MatrixProduct> parseProduct(LineReader &line) {
  MatrixProduct product;
  MGPU_TRY(line.keyword("product"));
  for (ElementType *type : {&product.factors, &product.sums}) {
    auto found = parseElementType(line.word());
    if (!found)
      return line.bad("a product's elements are of no type");
    *type = *found;
  }
  for (uint64_t *size : {&product.m, &product.n, &product.k, &product.batch}) {
    MGPU_TRY_ASSIGN(*size, line.integer<uint64_t>("size"));
    if (*size == 0)
      return line.bad("a product has a size of 0");
  }
  for (MatrixProduct::Matrix &matrix : product.matrices) {
    MGPU_TRY_ASSIGN(matrix.argument, line.integer<uint32_t>("argument"));
    for (uint64_t *count :
         {&matrix.offset, &matrix.rowStride, &matrix.batchStride}) {
      MGPU_TRY_ASSIGN(*count, line.integer<uint64_t>("count"));
    }
  }
  return product;
}

static Result<TensorMap> parseMap(LineReader &line) {
  TensorMap map;
  MGPU_TRY(line.keyword("map"));
  MGPU_TRY_ASSIGN(map.argument, line.integer<uint32_t>("argument"));
  MGPU_TRY_ASSIGN(map.offsetBytes, line.integer<uint64_t>("byte count"));
  auto type = parseElementType(line.word());
  if (!type)
    return line.bad("a map's elements are of no type");
  map.type = *type;
  for (uint64_t *size : {&map.sizes[0], &map.sizes[1], &map.sizes[2],
                         &map.strideBytes[0], &map.strideBytes[1]}) {
    MGPU_TRY_ASSIGN(*size, line.integer<uint64_t>("size"));
  }
  for (uint32_t &size : map.box) {
    MGPU_TRY_ASSIGN(size, line.integer<uint32_t>("size"));
  }
  return map;
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
  if (line.peek() == "only") {
    MGPU_TRY(line.keyword("only"));
    MGPU_TRY_ASSIGN(kernel.onlyArch, line.quoted());
  }
  if (line.peek() == "awaits") {
    MGPU_TRY(line.keyword("awaits"));
    kernel.awaits = true;
  }
  if (line.peek() == "product") {
    MGPU_TRY_ASSIGN(kernel.product, parseProduct(line));
  }
  while (!line.atEnd()) {
    MGPU_TRY_ASSIGN(TensorMap map, parseMap(line));
    kernel.tensorMaps.push_back(map);
  }
  return kernel;
}

/// "sm_90a" without the letter, and its number.
static std::pair<std::string_view, uint32_t> cardOf(std::string_view arch) {
  while (!arch.empty() && arch.back() >= 'a' && arch.back() <= 'z')
    arch.remove_suffix(1);
  uint32_t number = 0;
  for (char c : arch)
    if (c >= '0' && c <= '9')
      number = 10 * number + uint32_t(c - '0');
  return {arch, number};
}

std::string archRefusal(const CudaText &kernel, const std::string &arch) {
  if (cardOf(arch).second < kernel.leastArch)
    return fmt::format("needs sm_{} or later, and not {}", kernel.leastArch,
                       arch);
  if (!kernel.onlyArch.empty() &&
      cardOf(arch).first != cardOf(kernel.onlyArch).first)
    return fmt::format("its instructions are of {} alone, and not of {}",
                       kernel.onlyArch, arch);
  return "";
}

std::string archOf(const CudaText &kernel, const std::string &arch) {
  return !kernel.onlyArch.empty() && archRefusal(kernel, arch).empty()
             ? kernel.onlyArch
             : arch;
}

bool awaitsOn(const CudaText &kernel, const std::string &arch) {
  constexpr uint32_t firstWithGridControl = 90;
  return kernel.awaits && kernel.takesPart &&
         cardOf(arch).second >= firstWithGridControl;
}

std::vector<std::pair<std::string, std::string>>
awaitMacros(const CudaText &kernel, const std::string &arch) {
  if (!awaitsOn(kernel, arch))
    return {};
  return {{"MGPU_PDL", "1"}};
}

std::vector<std::string> compileOptions(const CudaText &kernel) {
  if (kernel.takesPart)
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

Result<void> checkParameters(const CudaText &kernel, const Cubin &cubin) {
  constexpr uint32_t launchBytes = 48; // an MgpuLaunch
  std::vector<uint32_t> given = kernel.parameterBytes, taken;
  if (kernel.takesPart)
    given.push_back(launchBytes);
  auto entry = cubin.entries.find(kernel.entry);
  if (entry == cubin.entries.end())
    return {};
  const uint64_t threads = kernel.launchBlock.volume(),
                 most = entry->second.maxThreads;
  if (most != 0 && threads > most)
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {}: its entry '{}' is compiled for blocks "
                            "of at most {} threads (__launch_bounds__), but "
                            "the launch has {}",
                            kernel.name, kernel.entry, most, threads));
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
