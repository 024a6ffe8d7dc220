// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/KernelRecipe.h"

#include "kernels/abi/LaunchForm.h"
#include "kernels/compile/CudaConfig.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <string_view>

namespace mgpu::kernels {

/// Adds the names of all `#define NAME` lines of `source`.
static void findMacros(std::string_view source, std::set<std::string> &names) {
  constexpr std::string_view directive = "#define ";
  for (size_t at = 0; at < source.size();) {
    size_t end = std::min(source.find('\n', at), source.size());
    std::string_view line = source.substr(at, end - at);
    at = end + 1;
    if (line.substr(0, directive.size()) != directive)
      continue;
    line.remove_prefix(directive.size());
    names.emplace(line.substr(0, line.find_first_of(" (\t")));
  }
}

std::string batchSource(std::span<const BatchItem> items) {
  std::string text;
  for (size_t k = 0; k < items.size(); ++k) {
    const BatchItem &item = items[k];
    std::set<std::string> macros;
    auto define = [&](const std::string &name, const std::string &value) {
      text += "#define " + name + " " + value + "\n";
      macros.insert(name);
    };
    if (item.entryName != item.entry) {
      define(item.entry, item.entryName);
      const std::string form(launchFormPrefix);
      define(form + item.entry, form + item.entryName);
    }
    for (const auto &[name, value] : item.macros)
      define(name, value);
    findMacros(item.source, macros);
    text += "namespace mgpu_batch_" + std::to_string(k) + " {\n" + item.source;
    if (!item.source.empty() && item.source.back() != '\n')
      text += '\n';
    text += "}\n";
    for (const std::string &name : macros)
      text += "#undef " + name + "\n";
  }
  return text;
}

BatchItem KernelRecipe::item() const {
  return {image.blob, image.entry, image.entry, macros};
}

CompileJob KernelRecipe::job() const {
  CompileJob job{image.blob, name + ".cu", options, compileArch};
  for (const auto &[macro, value] : macros)
    job.options.push_back(fmt::format("-D{}={}", macro, value));
  return job;
}

Result<KernelImage> KernelRecipe::imageOf(const CompiledKernel &compiled,
                                          const Cubin &cubin) const {
  if (!compiled.find(image.entry) && image.takesPart)
    return fail(ErrorKind::Internal,
                fmt::format("NVRTC reports nothing of kernel {}", name));
  if (!compiled.find(image.entry))
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {}: there is no entry '{}' once compiled: "
                            "declare it extern \"C\" __global__",
                            name, image.entry));
  MGPU_TRY(checkParameters(name, image, cubin));
  if (auto form = checkLaunchForm(name, image, cubin); !form)
    return fail(ErrorKind::Internal, std::move(form.error().message));
  return imageOf(compiled.cubin);
}

KernelImage KernelRecipe::imageOf(std::span<const std::byte> cubin) const {
  KernelImage out = image;
  // Not a choice of who asks: with less memory, cuBLASLt has other algorithms.
  out.workspaceBytes = out.product ? productWorkspaceBytes : 0;
  out.setBytes(cubin);
  return out;
}

void setLaunch(KernelImage &image, const KernelSpace &space,
               const KernelConfig &config) {
  image.block = config.block();
  image.covers = space.covered(config);
  if (const uint32_t blocks = config[KernelParameter::ClusterX]; blocks > 1)
    image.cluster = {blocks, 1, 1};
  if (space.sharedIsDynamic)
    image.dynamicSharedBytes = uint32_t(space.sharedBytesOf(config));
  if (const std::optional<uint32_t> place = libraryPlace(space, config);
      place == 0u)
    image.product.reset();
  else if (place && image.product)
    image.product->choice = *place - 1;
}

static KernelRecipe bareRecipe(const CudaText &text, const std::string &arch) {
  KernelRecipe recipe{text.name, text.image, awaitMacros(text, arch),
                      compileOptions(text), archOf(text, arch)};
  recipe.image.arch = arch;
  recipe.image.awaits = awaitsOn(text, arch);
  return recipe;
}

KernelRecipe recipeOf(const CudaText &text, const KernelConfig &config,
                      const std::string &arch) {
  KernelRecipe recipe = bareRecipe(text, arch);
  setLaunch(recipe.image, *text.space, config);
  // A file of a user's has tunables alone, and keeps its launch.
  std::ranges::move(text.image.takesPart ? macrosOf(*text.space, config)
                                         : tunableMacros(*text.space, config),
                    std::back_inserter(recipe.macros));
  return recipe;
}

KernelRecipe recipeOf(const CudaText &text, const std::string &arch) {
  return text.space && text.image.takesPart
             ? recipeOf(text, text.space->defaults, arch)
             : bareRecipe(text, arch);
}

std::vector<std::vector<std::byte>>
cudaObjects(const std::vector<CudaText> &texts,
            const std::vector<std::vector<std::byte>> &cubins,
            const std::string &arch) {
  std::vector<std::vector<std::byte>> out;
  for (size_t k = 0; k < texts.size(); ++k)
    out.push_back(encodeImage(recipeOf(texts[k], arch).imageOf(cubins[k])));
  return out;
}

} // namespace mgpu::kernels
