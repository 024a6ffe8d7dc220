// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/record/Provenance.h"

#include "bench/measure/Environment.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace mgpu::tuner {

db::Provenance provenanceHere(std::string version, std::string pinnedCpus) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  auto environment = nlohmann::json::object();
  bench::Environment here = bench::readEnvironment();
  here.pinnedCpus = std::move(pinnedCpus);
  for (auto &[name, value] : here.entries())
    environment[name] = value;
  return {0, std::move(version), host,
          nlohmann::json{{"environment", std::move(environment)}}.dump()};
}

} // namespace mgpu::tuner
