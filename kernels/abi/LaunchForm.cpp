// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/abi/LaunchForm.h"

#include <cstring>
#include <fmt/format.h>

namespace mgpu::kernels {

static std::string dims(Dim3 d) {
  return fmt::format("{}x{}x{}", d.x, d.y, d.z);
}

static std::string words(const LaunchForm &form) {
  return fmt::format("blocks of {} threads that cover {}, clusters of {}, {} "
                     "bytes of dynamic shared memory{}",
                     dims(form.block), dims(form.covers), dims(form.cluster),
                     form.dynamicSharedBytes,
                     form.awaits ? ", waiting for what it follows" : "");
}

LaunchForm launchFormOf(const KernelImage &image) {
  return {LaunchForm::firstVersion, image.block, image.covers, image.cluster,
          image.dynamicSharedBytes, image.awaits};
}

std::string launchFormText(const std::string &entry,
                           const LaunchFormWords &words) {
  return fmt::format(
      R"(// How the entry is to be launched, for whoever loads it.
extern "C" __constant__ const unsigned {}{}[] = {{
    {}, {},
    {}, {}, {},
    {}, {}, {}}};
)",
      launchFormPrefix, entry, LaunchForm::firstVersion, words.block,
      words.coversX, words.coversY, words.coversZ, words.cluster,
      words.sharedBytes, words.awaits);
}

std::string launchFormText(const KernelImage &image) {
  const LaunchForm form = launchFormOf(image);
  auto number = [](uint32_t value) { return std::to_string(value); };
  auto numbers = [](Dim3 d) {
    return fmt::format("{}, {}, {}", d.x, d.y, d.z);
  };
  return launchFormText(image.entry,
                        {number(form.covers.x), number(form.covers.y),
                         number(form.covers.z), numbers(form.cluster),
                         number(form.dynamicSharedBytes), numbers(form.block),
                         number(form.awaits)});
}

Result<void> checkLaunchForm(std::string_view name, const KernelImage &image,
                             const Cubin &cubin) {
  const auto entry = cubin.entries.find(image.entry);
  if (entry == cubin.entries.end() || !image.takesPart)
    return {};
  LaunchForm own;
  static_assert(sizeof own == 12 * sizeof(uint32_t) &&
                std::is_trivially_copyable_v<LaunchForm>);
  const std::vector<uint32_t> &said = entry->second.launchForm;
  if (said.size() * sizeof(uint32_t) != sizeof own ||
      said.front() != LaunchForm::firstVersion)
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {}: its code does not say how it is to be "
                            "launched, as another version of mgpu made it: "
                            "compile it again",
                            name));
  std::memcpy(static_cast<void *>(&own), said.data(), sizeof own);
  const LaunchForm asked = launchFormOf(image);
  if (own == asked)
    return {};
  return fail(ErrorKind::Invalid,
              fmt::format("kernel {}: its code is compiled for {}, but would "
                          "be launched with {}: compile it again",
                          name, words(own), words(asked)));
}

} // namespace mgpu::kernels
