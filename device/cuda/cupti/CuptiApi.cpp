// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/cupti/CuptiApi.h"

#include "support/SharedLibrary.h"

#include <fmt/format.h>

namespace mgpu::device {

std::string cuptiVersionText(uint32_t version) {
  // cupti_version.h has the list; from 13.0 on the number says it itself.
  if (version >= 130000)
    return fmt::format("{}.{}", version / 10000, version / 100 % 100);
  switch (version) {
  case 19:
    return "12.0";
  case 20:
    return "12.2";
  case 21:
    return "12.3";
  case 22:
    return "12.4";
  case 23:
    return "12.5";
  case 24:
    return "12.6";
  case 26:
    return "12.8";
  case 27:
  case 28:
    return "12.9";
  default:
    return fmt::format("of API version {}", version);
  }
}

Result<void> checkCuptiVersion(uint32_t version) {
  constexpr uint32_t first = 19, firstUnknown = 140000;
  if (version >= first && version < firstUnknown)
    return {};
  return fail(ErrorKind::Absent,
              fmt::format("libcupti is {}, and only those of CUDA 12 and 13 "
                          "are known: install that of CUDA 13",
                          cuptiVersionText(version)));
}

static Result<std::shared_ptr<const CuptiApi>>
openLibrary(const std::string &name) {
  auto [library, path] = openToolkitLibrary(
      name.empty() ? std::vector<std::string>{"libcupti.so.13",
                                              "libcupti.so.12", "libcupti.so"}
                   : std::vector<std::string>{name});
  if (!library)
    return fail(ErrorKind::Absent,
                "no libcupti.so: install CUPTI (package cuda-cupti)");
  auto api = std::make_shared<CuptiApi>();
  EntryPoints entries(library);
#define MGPU_CUPTI_TAKE(name, ...) entries.take("cupti" #name, api->name);
  MGPU_CUPTI_FUNCTIONS(MGPU_CUPTI_TAKE)
#undef MGPU_CUPTI_TAKE
  if (entries.missing.empty() &&
      api->GetVersion(&api->version) != CuptiResult::Success)
    entries.missing = "version";
  if (!entries.missing.empty())
    return fail(ErrorKind::Absent,
                fmt::format("{} has no {}: install CUPTI of CUDA 13 (package "
                            "cuda-cupti)",
                            path, entries.missing));
  MGPU_TRY(checkCuptiVersion(api->version));
  return std::shared_ptr<const CuptiApi>(std::move(api));
}

Result<std::shared_ptr<const CuptiApi>> openCupti(const std::string &name) {
  if (!name.empty())
    return openLibrary(name);
  // Another table would be another library to CuptiSession, which would
  // subscribe once more: CUPTI has one subscriber.
  static const Result<std::shared_ptr<const CuptiApi>> opened = openLibrary("");
  return opened;
}

} // namespace mgpu::device
