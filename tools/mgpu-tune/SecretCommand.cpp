// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `mgpu-tune secret`: what ranks that meet by TCP prove to each other.
#include "device/tcp/Handshake.h"
#include "tools/mgpu-tune/CommonOptions.h"
#include "tools/mgpu-tune/JsonOutput.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::tools {

static Result<int> runSecret(const SecretOptions &options) {
  MGPU_TRY(device::makeSecret(options.file));
  if (options.json)
    printJson(nlohmann::json{{"file", options.file}});
  else
    fmt::print("{0} written; start each rank with MGPU_SECRET_FILE={0}\n",
               options.file);
  return 0;
}

void addSecretCommand(CommandLine &line) {
  auto [command, options] = addCommand<SecretOptions>(
      line, "secret", "Make the secret of ranks that meet by TCP", runSecret);
  command
      ->add_option("FILE", options.file,
                   "Where to write it, for you alone to read; what is there "
                   "already stays")
      ->required();
  addJson(command, options.json);
}

} // namespace mgpu::tools
