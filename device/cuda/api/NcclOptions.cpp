// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/NcclOptions.h"

#include "support/Number.h"

#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::device {

Result<void> checkNcclMixing() {
  const char *mixing = std::getenv("NCCL_GRAPH_MIXING_SUPPORT");
  if (mixing && std::strcmp(mixing, "0") == 0)
    return {};
  return fail(ErrorKind::Usage,
              "NCCL_GRAPH_MIXING_SUPPORT must be 0 in a process that replays "
              "graphs with collectives among GPUs: set it before the program "
              "starts");
}

Result<NcclOptions> parseNccl(std::string_view text) {
  using Ctas = NcclOptions::Ctas;
  constexpr uint32_t mostCtas = 64; // NCCL's own limit (MAXCHANNELS)
  NcclOptions out;
  auto wrong = [&](std::string_view word) {
    return fail(ErrorKind::Usage,
                fmt::format("NCCL setting '{}': there are overlap, windows, "
                            "min-ctas=N and max-ctas=N (1 to {}), and "
                            "ctas=default|efficiency|zero",
                            word, mostCtas));
  };
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    const size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals),
                           value = equals == std::string_view::npos
                                       ? ""
                                       : word.substr(equals + 1);
    const uint32_t count = numberFrom<uint32_t>(value).value_or(0);
    if (word == "overlap")
      out.overlaps = true;
    else if (word == "windows")
      out.windows = true;
    else if (key == "min-ctas" && count >= 1 && count <= mostCtas)
      out.leastCtas = count;
    else if (key == "max-ctas" && count >= 1 && count <= mostCtas)
      out.mostCtas = count;
    else if (word == "ctas=default")
      out.ctas = Ctas::Default;
    else if (word == "ctas=efficiency")
      out.ctas = Ctas::Efficiency;
    else if (word == "ctas=zero")
      out.ctas = Ctas::Zero;
    else
      return wrong(word);
  }
  if (out.mostCtas && out.leastCtas > out.mostCtas)
    return fail(
        ErrorKind::Usage,
        fmt::format("NCCL settings: min-ctas={} is more than max-ctas={}",
                    out.leastCtas, out.mostCtas));
  return out;
}

} // namespace mgpu::device
